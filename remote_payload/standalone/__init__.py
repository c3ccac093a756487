"""The drafter test: checkpoint, rows, model, wirings. The only room of the payload that needs torch and safetensors."""

import os

# Before torch is imported. On a server that others use too, spinning OpenMP threads wait for each other's time slices
# and small models run 30 times slower; threads that sleep while they wait cost next to nothing on an idle one.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
