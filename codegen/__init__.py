"""Compiles schema.yaml into Python, Thrift and C++ bindings; needs neither torch nor the generated code."""
