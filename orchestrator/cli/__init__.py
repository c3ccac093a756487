"""The command line: parse, call one core function, print. The only room that imports click or prints."""
