"""The GPU engine: `engine` drives, `device` alone imports PyCUDA, `variants` is the table of kernels."""
