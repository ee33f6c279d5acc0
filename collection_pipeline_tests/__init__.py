"""Tests; each file reads as the specification of the module it is named after."""
