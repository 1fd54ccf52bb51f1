"""The long run of all faults, or one case again.

python -m tests.faults --out benchmarks/results/faults.txt    # all, some thirty minutes on two cores
python -m tests.faults --only fasta --seed 1234               # one case
python -m tests.faults --only hdf5 --seeds 200 --from 1000    # other cases
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path = [folder for folder in sys.path if Path(folder or ".").resolve() != ROOT]
# last, so that the swsearch that is installed is what is tested
sys.path += [str(ROOT / "tests"), str(ROOT)]
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process that has threads is not copied whole

from faults.run import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
