"""Result files of other tools -> measurements; pure: bytes in, a MeasurementSet out, no file opened."""
