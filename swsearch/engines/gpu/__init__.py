"""The GPU engine: `engine` drives, `several` divides, `driver` reaches CUDA, `variants` is the table of kernels."""
