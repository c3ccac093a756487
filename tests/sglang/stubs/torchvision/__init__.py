"""Importable, and nothing more: every submodule and every name in them exists, and none does anything.

SGLang imports torchvision for image models when it starts, and its published wheel does not load beside a CPU torch.
"""

import importlib.abc
import importlib.machinery
import sys
import types


class _HasAnything(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()


class _Nothing(metaclass=_HasAnything):
    """Takes any arguments, and has any attribute, as a class and as an object."""

    def __init__(self, *_args, **_kwargs):
        pass

    def __getattr__(self, name):
        return _Nothing()


class _Module(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, _path=None, _target=None):
        ours = name.startswith("torchvision.")
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if ours else None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, _Finder())
__version__ = "0.0.0"
