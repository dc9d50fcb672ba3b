"""What a round of a training on several machines should take: its bytes on the wire and its time.

In a star every worker gets all parameters from the coordinator and sends all back, so that the coordinator's link
carries N times their size each way. In the other topologies workers exchange them among themselves.
docs/distributed.md has the messages, src/distributed/protocol/messages.proto their fields.
"""
import math

CHUNK_BYTES = 262144
PREAMBLE = 16  # src/distributed/sockets/frame.h
DELAY = 150e-6  # alpha: what a message takes beyond its bytes, as usual for gigabit Ethernet
EPOCH = 1
# Bytes for each byte of floats, of the codecs that are measured (src/distributed/codecs/codec_dense.cc).
CODED = {"FP16": 1 / 2, "INT8": (1 + 4 / 256) / 4}


def varint(value):
    return max(1, math.ceil(value.bit_length() / 7))


def framed(size):
    """A frame of ZeroMQ's protocol (ZMTP 3) with its own header."""
    return size + (2 if size <= 255 else 9)


def message(body, number, member, sequence):
    """A ClusterMessage whose field `number` has `body` bytes, with its preamble, in its frame."""
    around = 9 + (1 + varint(EPOCH)) + (1 + varint(member)) + (1 + varint(sequence))
    return framed(PREAMBLE + around + (1 if number < 16 else 2) + varint(body) + body)


class Wire:
    """Bytes that one worker sends (up) and gets (down), in messages of typical numbers, without TCP's headers."""

    def __init__(self, state_bytes, workers, rounds, steps, heartbeat_ms=1000):
        chunks = [min(CHUNK_BYTES, state_bytes - at) for at in range(0, state_bytes, CHUNK_BYTES)]
        state = varint((EPOCH << 40) + rounds)
        push, size = varint(rounds), varint(state_bytes)
        step, stride = varint(rounds * steps * workers), varint(steps * workers)
        own, all_sent = rounds * (2 * len(chunks) + 1), rounds * workers * (2 * len(chunks) + 2)
        sized = lambda body, number, sequence: message(body, number, workers, sequence)

        def values(transfer, sequence):
            chunk = (1 + transfer) + 2 * (1 + size) + 5
            return sum(sized(chunk, 30, sequence) + framed(count) for count in chunks)

        def received(transfer, sequence):
            return len(chunks) * sized((1 + transfer) + (1 + size), 31, sequence)

        steps_leased = (1 + step) + (1 + varint(steps))
        lease = 2 + (2 + steps_leased) + (1 + varint(EPOCH << 40))
        pushed = (1 + push) + lease + 3 * (1 + varint(rounds)) + 2 + 9 + 6 + 9 + 9 + 2 + 2
        idle = 2 + 3 + (1 + varint(rounds)) + (1 + state) + 9
        work = idle + (1 + varint(rounds * steps)) + lease + (1 + stride) + 2
        self.up = values(push, own) + sized(pushed, 13, own) + received(state, own)
        self.down = (values(state, all_sent) + sized(idle, 22, all_sent) + sized(work, 22, all_sent)
                     + received(push, all_sent))
        alive = sized(2 + (1 + varint(rounds)) + lease + 2 * (1 + step) + (1 + push), 12, own)
        # Heartbeats, each with an Attach and, where there is one, the Push; Work is the answer.
        self.up_a_second = (alive + sized(9, 11, own) + sized(pushed, 13, own)) * 1000 / heartbeat_ms
        self.down_a_second = sized(work, 22, all_sent) * 1000 / heartbeat_ms


def exchanged_bytes(state_bytes, workers):
    """Of parameters, that a worker sends to others and gets from them, each way; of a tree the mean."""
    return 2 * state_bytes * (workers - 1) / workers


def round_seconds(compute, steps, workers, state_bytes, bytes_a_second, topology="STAR", overlap="WAIT", backward=0.0,
                  parts=1, delay=DELAY, each=0.0):
    """alpha and beta; `each`: what a worker costs besides (gamma). A star: parameters to all, then from all, through
    the coordinator's link. Else what workers exchange, after the coordinator's word and before its commit."""
    levels = math.ceil(math.log2(max(2, workers)))
    if topology == "STAR":
        exchange = 2 * workers * state_bytes / bytes_a_second + 2 * delay
    elif topology == "TREE":
        # In segments, so that levels overlap; inner workers have two below them.
        exchange = 4 * state_bytes / bytes_a_second + (2 * levels + 4) * delay
    else:
        stages = {"SHARDED": 2, "RING": 2 * (workers - 1), "HALVING": 2 * levels}[topology]
        exchange = exchanged_bytes(state_bytes, workers) / bytes_a_second + (stages + 4) * delay
    exchange += each * workers
    if overlap == "DELAYED":
        return max(steps * compute, exchange)
    if overlap == "BACKWARD":
        # Gradients come in so many parts, equally far apart in their share of the computation; the last one is there
        # when that ends.
        first = compute * (1 - backward * (1 - 1 / parts))
        return max(compute + exchange / parts, first + exchange)
    return steps * compute + exchange
