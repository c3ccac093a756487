"""The payload: shipped whole to the server, Python >= 3.10, stdlib (+ torch and safetensors in `standalone/`)."""
