"""The base of every record that crosses the wire, and a small JSON reader for a server without pydantic.

Not covered: defaults that depend on other fields, recursive types, unions other than `X | None`.
"""

import dataclasses
import functools
import json
import math
import types
import typing
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin

if TYPE_CHECKING:
    from typing import dataclass_transform
else:  # younger than Python 3.10, and only type checkers look at it

    def dataclass_transform(**_):
        """Nothing at run time."""
        return lambda cls: cls


SCHEMA_VERSION = 1
INT_RANGE = (-(2**63), 2**63 - 1)
"""What the kernel's calls can take: a larger offset, size or pid is damage."""
SHOWN_CHARACTERS = 200
_PLAIN = (int, float, str, bool)

R = TypeVar("R", bound="Record")


class SchemaError(ValueError):
    """A JSON text does not match its record; the message starts with the path of the offending key."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """Base of the wire's records: frozen keyword-only dataclasses whose unknown keys are errors.

    A subclass is a dataclass without a decorator. Its methods are the ones here instead of generated ones: generating
    them took longer than anything else at the start of the laptop's command, of a verb and of the worker.
    `__pydantic_config__` is read by the laptop's pydantic and inert where pydantic does not exist.
    """

    __pydantic_config__: typing.ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **values: object) -> None:
        own = self.__dict__
        for field in dataclasses.fields(self):  # type: ignore[arg-type] # every subclass is a dataclass
            if field.name in values:
                own[field.name] = values.pop(field.name)
            elif field.default is not dataclasses.MISSING:
                own[field.name] = field.default
            elif field.default_factory is not dataclasses.MISSING:
                own[field.name] = field.default_factory()
            else:
                raise TypeError(f"{type(self).__name__} needs `{field.name}`")
        if values:
            raise TypeError(f"{type(self).__name__} has no `{next(iter(values))}`")
        self.__post_init__()

    def __post_init__(self) -> None:
        """Reject an invalid record; the base accepts all."""

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


def require(condition: bool, message: str) -> None:
    """Reject an invalid record at construction. Raises ValueError."""
    if not condition:
        raise ValueError(message)


def require_finite(**values: float | None) -> None:
    """Reject NaN and infinity, which JSON cannot carry. Raises ValueError naming the field."""
    for name, value in values.items():
        if value is not None and not math.isfinite(value):
            raise ValueError(f"`{name}` must be finite, found: {value}")


def to_json(record: Any) -> str:
    """One line of JSON. Raises ValueError on NaN or infinity."""
    return json.dumps(dataclasses.asdict(record), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def from_json(cls: type[R], text: str | bytes) -> R:
    """Read one record. Raises SchemaError naming the path, what was expected and what was found; nothing else."""
    return from_value(cls, parse_json(text, f"JSON for {cls.__name__}"))


def from_value(cls: type[R], value: object) -> R:
    """As `from_json`, for a value that is already parsed."""
    return typing.cast(R, _record(cls, value, "$"))


def parse_json(text: str | bytes, expected: str) -> Any:
    """The value of a JSON text from somebody else; `expected` are the words for it. Raises SchemaError."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise SchemaError(f"$: expected {expected}, found: {error}") from None
    except RecursionError:
        raise SchemaError(f"$: expected {expected}, found: brackets nested too deep") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _record(cls: type, value: object, path: str) -> object:
    if not isinstance(value, dict):
        raise SchemaError(f"{path}: expected an object for {cls.__name__}, found: {type(value).__name__}")
    fields = _fields(cls)
    if not value.keys() <= fields.keys():
        raise SchemaError(f"{path}.{min(value.keys() - fields.keys())}: unknown key; allowed: {', '.join(fields)}")
    arguments: dict[str, object] = {}
    for name, (hint, plain, is_needed) in fields.items():
        if name in value:
            item = value[name]
            is_plain = plain is not None and type(item) is plain and _all_plain(plain, (item,))
            arguments[name] = item if is_plain else _value(hint, item, f"{path}.{name}")
        elif is_needed:
            raise SchemaError(f"{path}.{name}: missing key of {cls.__name__}")
    try:
        return cls(**arguments)
    except ValueError as error:
        raise SchemaError(f"{path}: {error}") from None


@functools.cache
def _fields(cls: type) -> dict[str, tuple[Any, "type | None", bool]]:
    """Of each field its type, that type where it is a plain one (or None), and whether it has to be there."""
    hints = typing.get_type_hints(cls)  # a tenth of a millisecond each, and a listing reads a record per run
    found = {}
    for field in dataclasses.fields(cls):
        origin, inner, _ = _form(hints[field.name])
        plain = inner if origin is None and inner in _PLAIN else None
        is_needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        found[field.name] = (hints[field.name], plain, is_needed)
    return found


@functools.cache
def _form(hint: Any) -> tuple[Any, Any, bool]:
    """Of a type its origin (None = it has none), what is in it, and whether it may be None."""
    origin, arms = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (arm for arm in arms if arm is not type(None))
        origin, inside, _ = _form(inner)
        return origin, inside, True
    if origin is Literal:
        return origin, arms, False
    return origin, {tuple: arms[:1], dict: arms[1:]}.get(origin, (hint,))[0], False


def _value(hint: Any, value: object, path: str) -> object:
    origin, inner, may_be_none = _form(hint)
    if value is None and may_be_none:
        return None
    if origin is Literal:
        if value in inner and not isinstance(value, bool):
            return value
        raise SchemaError(f"{path}: expected one of {', '.join(map(repr, inner))}, found: {_shown(value)}")
    if origin is tuple:
        if not isinstance(value, list):
            raise SchemaError(f"{path}: expected a list, found: {type(value).__name__}")
        if inner in _PLAIN and set(map(type, value)) == {inner} and _all_plain(inner, value):
            return tuple(value)
        return tuple(_value(inner, item, f"{path}[{index}]") for index, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise SchemaError(f"{path}: expected an object, found: {type(value).__name__}")
        return {key: _value(inner, item, f"{path}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(inner):
        return _record(typing.cast(type, inner), value, path)
    return _scalar(inner, value, path)


def _all_plain(kind: type, items: "typing.Sequence[Any]") -> bool:
    """Whether nothing is wrong with any of these, all of that plain type, at a tenth of the cost of looking at each.

    A benchmark's requests hold a hundred numbers each. False says nothing: each is looked at, and named.
    """
    if kind is float:
        return all(map(math.isfinite, items))
    return kind is not int or (INT_RANGE[0] <= min(items) and max(items) <= INT_RANGE[1])


def _scalar(hint: Any, value: object, path: str) -> object:
    if isinstance(value, bool) and hint is not bool:
        raise SchemaError(f"{path}: expected {hint.__name__}, found: {value!r}")
    if isinstance(value, int) and not INT_RANGE[0] <= value <= INT_RANGE[1]:
        raise SchemaError(f"{path}: expected a number of at most 64 bits, found: {_shown(value)}")
    if hint is float and isinstance(value, int | float):
        if not math.isfinite(value):  # `1e999` is JSON, and Python reads it as infinity
            raise SchemaError(f"{path}: expected a finite number, found: {value}")
        return float(value)
    if isinstance(value, hint):
        return value
    raise SchemaError(f"{path}: expected {hint.__name__}, found: {_shown(value)}")


def _shown(value: object) -> str:
    """A value in a message: short, whatever it is."""
    if isinstance(value, list | dict):
        return type(value).__name__  # its repr may nest deeper than Python can follow
    shown = repr(value)
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:SHOWN_CHARACTERS]}..."
