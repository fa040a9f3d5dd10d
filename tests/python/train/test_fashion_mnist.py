"""The stand-in for FashionMNIST: torchvision takes its files, and a model learns from them."""

import fashion_mnist
import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("the data set was downloaded")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("torchvision.datasets.mnist.download_and_extract_archive", refuse)


def test_torchvision_takes_the_files(tmp_path, no_network):
    fashion_mnist.write(tmp_path, train=50, test=20)
    train = torchvision.datasets.FashionMNIST(tmp_path, train=True, download=True)
    test = torchvision.datasets.FashionMNIST(tmp_path, train=False, download=True)
    assert (len(train), len(test)) == (50, 20)
    image, label = train[0]
    assert image.size == (28, 28) and 0 <= label < 10
    assert not torch.equal(train.data[:20], test.data)


def test_equal_arguments_give_equal_files(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        fashion_mnist.write(tmp_path / name, train=10, test=5, seed=seed)
    texts = [
        b"".join(file.read_bytes() for file in sorted((tmp_path / name).rglob("*ubyte")))
        for name in "abc"
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_model_learns_them(tmp_path, no_network):
    fashion_mnist.write(tmp_path, train=600, test=200)
    torch.manual_seed(0)
    sets = [
        torchvision.datasets.FashionMNIST(tmp_path, train=is_train, download=True)
        for is_train in (True, False)
    ]
    (train, labels), (test, expected) = [(one.data.flatten(1) / 255, one.targets) for one in sets]
    model = torch.nn.Linear(28 * 28, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(model(train), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (model(test).argmax(1) == expected).float().mean() > 0.9
