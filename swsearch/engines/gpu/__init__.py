"""The GPU engine: `engine` drives, `several` divides, `device` imports PyCUDA, `variants` is the table of kernels."""
