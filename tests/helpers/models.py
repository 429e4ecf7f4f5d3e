"""Hand-made models, each showing one thing that a program can hold.

`MODELS` has those that PyTorch saves and loads, `BEYOND` those where it gives up.
"""

from __future__ import annotations

from .cases import Table
from .models_beyond import BEYOND as BEYOND
from .models_inputs import INPUTS
from .models_objects import EXTENSIONS
from .models_operators import OPERATORS
from .models_shapes import SHAPES
from .models_structure import STRUCTURE
from .models_tensors import TENSORS, TENSORS_BEYOND
from .models_training import TRAINING
from .models_weights import WEIGHTS

#: Models that PyTorch saves and loads, by what they are about.
GROUPS: dict[str, Table] = {
    "Shapes": SHAPES,
    "Inputs and outputs": INPUTS,
    "Weights": WEIGHTS,
    "Kinds of tensors": TENSORS,
    "Structure": STRUCTURE,
    "Operators and arguments": OPERATORS,
    "Training, effects and higher-order operators": TRAINING,
    "Extensions": EXTENSIONS,
}

MODELS = Table()
for _table in GROUPS.values():
    for _case in _table.values():
        MODELS.add(_case)
for _case in TENSORS_BEYOND.values():
    BEYOND.add(_case)
