"""Hand-made models, each showing one thing that a program can hold.

`MODELS` has those that PyTorch saves and loads, `BEYOND` those where it gives up.
"""

from __future__ import annotations

from . import models_beyond
from .cases import Table
from .models_inputs import INPUTS
from .models_names import NAMES, NAMES_BEYOND
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
    "Names of nodes and subgraphs": NAMES,
    "Operators and arguments": OPERATORS,
    "Training, effects and higher-order operators": TRAINING,
    "Extensions": EXTENSIONS,
}

MODELS, BEYOND = Table(), Table()
_BEYOND = (models_beyond.BEYOND, TENSORS_BEYOND, NAMES_BEYOND)
for _all, _tables in ((MODELS, GROUPS.values()), (BEYOND, _BEYOND)):
    for _table in _tables:
        for _case in _table.values():
            _all.add(_case)
