"""The tests: one room per room of the code, and `contracts` for what holds everywhere."""
