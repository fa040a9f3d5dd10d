# A borrower keeps the object after the owner's ref is gone.
import ray


@ray.remote
class Keeper:
    def keep(self, box):
        self.ref = box[0]

    def read(self):
        return ray.get(self.ref)


ray.init(num_cpus=1, include_dashboard=False)
keeper = Keeper.remote()
ref = ray.put("borrowed")
ray.get(keeper.keep.remote([ref]))
del ref
print(ray.get(keeper.read.remote()), ray.get(keeper.read.remote()))
