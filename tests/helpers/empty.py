import msgspec
class Empty(msgspec.Struct, frozen=True):
    number: int
    title: str = "empty"
    def definition(self):
        return {"policy": "easy", "settings": {}, "seed": self.number, "engine": "embedded", "energy": False, "selection": {"jobs": [0, None], "nodes": None, "walltime": "requested"}, "window": [12, 1024], "perfect": False, "digests": ["0123456789abcdef01234567"]*2}
METRICS = {f"metric_{k}": 1.2345678901 * k for k in range(25)}
def nothing(task):
    return METRICS
