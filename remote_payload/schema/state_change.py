"""How one state is another one in other numbers: scaled as a whole, token by token, or through a norm."""

from remote_payload.schema.record import Record


class StateChange(Record):
    """Distances of a state from a known one once a change of its numbers is taken back, each the median over tokens."""

    factor: float
    """<state, known> / <known, known>, the median over tokens: 0.9 where every number is nine tenths of the known."""
    scaled_error: float
    """|state - factor * known| / |factor * known|: one factor for all tokens."""
    turned_error: float
    """The sine of the angle between the two: what no factor takes back, though each token had its own."""
    normed_error: float | None = None
    """|state - w * known / rms(known)| / |state|, `w` a number a channel fitted over all tokens: a norm's output; None
    = not fitted."""
    unnormed_error: float | None = None
    """The same the other way round: the known one is a norm's output of the state."""
    channels_error: float | None = None
    """|state - w * known| / |state|: a norm with another weight."""
