"""A file that torch.export.save wrote loads without any permission, but for programs that need a pickle."""

from __future__ import annotations

import io

import pt2wire
import pytest
from pt2wire import DeserializeError, UnsafeArtifactError

from .helpers.examples import EXAMPLES
from .helpers.families import FAMILIES
from .helpers.models import MODELS
from .helpers.oracles import grouped, trips_of

pytestmark = pytest.mark.wide

_SAVED = [
    name for table in (MODELS, EXAMPLES, FAMILIES) for name, case in table.items() if case.unsaved is None
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", grouped(_SAVED))
def test_file_of_pytorch_loads_by_default(name: str) -> None:
    trips = trips_of(name)
    case = trips.case
    try:
        pt2wire.load(io.BytesIO(trips.pytorch_file))
    except UnsafeArtifactError as error:
        if case.operators:
            assert f"allow_operators={[*case.operators]}" in str(error)
            return
        assert case.pickled or case.types, "nothing of it needs a pickle"
        assert "allow_pickle=True" in str(error) or "types=[" in str(error)
    except DeserializeError:
        assert case.broken is not None, "PyTorch reads it"
