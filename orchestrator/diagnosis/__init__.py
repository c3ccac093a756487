"""Pure diagnosis: results -> findings -> verdict and the fix. Opens no file."""
