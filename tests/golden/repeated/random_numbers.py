"""The generator of every random number, and what is drawn with it."""
import math

MASK = (1 << 64) - 1


def mix(v):
    v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9 & MASK
    v = (v ^ v >> 27) * 0x94D049BB133111EB & MASK
    return v ^ v >> 31


def fnv(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return h


class Walk:
    def __init__(self, seed, purpose, stream=0):
        self.key, self.stream, self.at = (mix(mix(seed + 0x9E3779B97F4A7C15 & MASK) ^ fnv(purpose)),
                                          stream, 0)
        self.block = None, None  # the last one: its number, and its two values

    def bits_at(self, index):
        i = index // 2
        if self.block[0] != i:
            self.block = i, self.values(i)
        return self.block[1][index % 2]

    def values(self, i):
        low = 0xFFFFFFFF
        c, k = ([i & low, i >> 32, self.stream & low, self.stream >> 32],
                [self.key & low, self.key >> 32])
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [p1 >> 32 ^ c[1] ^ k[0], p1 & low, p0 >> 32 ^ c[3] ^ k[1], p0 & low]
            k = [k[0] + 0x9E3779B9 & low, k[1] + 0xBB67AE85 & low]
        return c[0] << 32 | c[1], c[2] << 32 | c[3]

    def bits(self):
        self.at += 1
        return self.bits_at(self.at - 1)

    def uniform(self):
        return (self.bits() >> 11) * 2.0 ** -53

    def normal(self):
        u1 = self.uniform()
        return math.sqrt(-2 * math.log(1 - u1)) * math.cos(2 * math.pi * self.uniform())

    def below(self, n):
        while True:
            p = (self.bits() >> 32) * n
            if p % 2 ** 32 >= 2 ** 32 % n:
                return p >> 32

    def shuffle(self, values):
        for i in range(len(values), 1, -1):
            j = self.below(i)
            values[i - 1], values[j] = values[j], values[i - 1]
        return values

    def choose(self, values, count):
        """Leaves the chosen first in `values` and gives them."""
        for i in range(count):
            j = i + self.below(len(values) - i)
            values[i], values[j] = values[j], values[i]
        return values[:count]
