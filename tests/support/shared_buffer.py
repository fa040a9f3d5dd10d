"""Values that use object store memory, for tests of stores that are full."""

import pickle


class Buffer:
    """Bytes that stay in shared memory as long as somebody refers to them."""

    def __init__(self, data):
        self.data = data

    def __reduce_ex__(self, protocol):
        return Buffer, (pickle.PickleBuffer(self.data),)

    def __len__(self):
        return memoryview(self.data).nbytes
