"""What type checkers see; written by `python -m robota._stubs`."""

from robota.sdk.settings.fitting import fit_to_tools as fit_to_tools
from robota.sdk.settings.layers import Layer as Layer
from robota.sdk.settings.layers import read_layers as read_layers
from robota.sdk.settings.settings import Settings as Settings
from robota.sdk.settings.settings import load_settings as load_settings
