#!/usr/bin/env bash
# Prepares a GPU machine without network: installs the wheels that lie in gpu_wheels/ and sets the path.
# usage, from the project's root: source benchmarks/speed/gpu_machine.sh
site=$(mktemp -d)
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$site" gpu_wheels/*.whl || return 1
export PYTHONPATH="$site:$PWD" PYTHONUNBUFFERED=1
unset PYTHONDONTWRITEBYTECODE  # an installed package has its bytecode
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
