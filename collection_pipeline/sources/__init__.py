"""Where answers come from: the contract, the SerpBase client, and the emulator that speaks the same wire format."""
