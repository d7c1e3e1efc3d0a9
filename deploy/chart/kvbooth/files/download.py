"""Fetches models from a Hugging Face hub into a folder, once.

    download.py --to=/models OWNER/NAME@REVISION…

A model goes to the folder NAME, without its owner. What a run before has fetched stays: files that are whole are not
fetched again, and one that was broken off goes on where it ended. Each file is compared with the hub's checksum when it
has been fetched, and fetched again where it differs. The last thing written is NAME/.kvbooth.json, which says what is
there; where it names the wanted revision and all files have their sizes, nothing is done and the hub is not asked.

It needs nothing but Python, since huggingface_hub 2 begins a file anew when its process has ended: HF_ENDPOINT and
HF_TOKEN are what that has.

Exit status: 0 all there; 1 broken off, another run goes on; 3 another run does not help: a token that is refused, a
repository that is not there, no room, no right to write.
"""

import argparse
import concurrent.futures
import errno
import fnmatch
import hashlib
import http.client
import json
import os
import shutil
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

MARKER = ".kvbooth.json"
PARTS = ".parts"  # files that are not whole yet
TRIES = 3  # of a file whose checksum is wrong
PAUSES = (1, 2, 5, 10, 30)  # seconds after broken connections that brought nothing


class Redirect(urllib.request.HTTPRedirectHandler):
    """Follows the hub to where its files lie, but does not take the token along to other hosts."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new and urllib.parse.urlsplit(newurl).netloc != urllib.parse.urlsplit(req.full_url).netloc:
            new.remove_header("Authorization")
        return new


class Hub:
    """A Hugging Face hub."""

    def __init__(self, address, token):
        self.address, self.token = address.rstrip("/"), token
        self.opener = urllib.request.build_opener(Redirect)

    def open(self, path, offset=0):
        request = urllib.request.Request(self.address + urllib.parse.quote(path, safe="/?=&"), headers={"User-Agent": "kvbooth-download"})
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        if offset:
            request.add_header("Range", f"bytes={offset}-")
        return self.opener.open(request, timeout=60)

    def model(self, repo, revision):
        with self.open(f"/api/models/{repo}/revision/{revision.replace('/', '%2F')}?blobs=true") as answer:
            return json.load(answer)


class Final(Exception):
    """Something that another run does not mend."""


def say(*words):
    print(*words, flush=True)


def gigabytes(n):
    return f"{n / 1e9:.2f} GB"


def checksum(path, algorithm, head=b""):
    """The hex digest of a file's bytes, with others before them."""
    digest = hashlib.new(algorithm, head)
    with open(path, "rb") as file:
        while block := file.read(8 << 20):
            digest.update(block)
    return digest.hexdigest()


def is_whole(path, file):
    """Whether a file is what the hub says: large ones have a SHA-256 there, the others Git's name of them."""
    try:
        if os.path.getsize(path) != file["size"]:
            return False
        if "sha256" in file:
            return checksum(path, "sha256") == file["sha256"]
        return checksum(path, "sha1", b"blob %d\0" % file["size"]) == file["git"]
    except FileNotFoundError:
        return False


def size_of(path):
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return -1


def read_marker(folder):
    try:
        with open(os.path.join(folder, MARKER), encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, ValueError):
        return {}


def write_marker(folder, marker):
    path = os.path.join(folder, MARKER)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(marker, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def on_disk(folder):
    """How many bytes a folder has, whole files and parts alike."""
    total = 0
    for at, _, names in os.walk(folder):
        total += sum(max(0, size_of(os.path.join(at, name))) for name in names)
    return total


class Progress:
    """Says every few seconds how far a download is, until it is left."""

    def __init__(self, what, folder, total, every):
        self.what, self.folder, self.total, self.every = what, folder, total, every
        self.end = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()

    def run(self):
        before, since = on_disk(self.folder), time.monotonic()
        while not self.end.wait(self.every):
            now, at = on_disk(self.folder), time.monotonic()
            rate = max(0, now - before) / (at - since)
            share = min(100, 100 * now / self.total) if self.total else 100
            left = f", about {(self.total - now) / rate / 60:.0f} min left" if rate and now < self.total else ""
            say(f"{self.what}: {gigabytes(min(now, self.total))} of {gigabytes(self.total)} ({share:.0f} %), {rate / 1e6:.0f} MB/s{left}")
            before, since = now, at


def listing(hub, repo, revision, ignore):
    """The commit of a revision, and its files by name: size, and sha256 or git."""
    info = hub.model(repo, revision)
    files = {}
    for sibling in info["siblings"]:
        name = sibling["rfilename"]
        if any(fnmatch.fnmatch(name, pattern) for pattern in ignore):
            continue
        if name.startswith("/") or ".." in name.split("/"):
            raise Final(f"{repo} has a file {name}, which would not lie in its folder")
        large = sibling.get("lfs")
        files[name] = {"size": sibling["size"], **({"sha256": large["sha256"]} if large else {"git": sibling["blobId"]})}
    if not files:
        raise Final(f"{repo}@{revision} has no files but those of --ignore")
    return info["sha"], files


def part_of(name, file):
    """The name of a file's part: another one for other content."""
    return f"{file.get('sha256') or file['git']}.{urllib.parse.quote(name, safe='')[-100:]}"


def append(hub, path, part, size):
    """Fetches what a part lacks, to its end or until the connection breaks."""
    offset = max(0, size_of(part))
    with hub.open(path, offset) as answer, open(part, "ab") as file:
        if offset and answer.status != http.client.PARTIAL_CONTENT:
            file.truncate(0)
        while block := answer.read(1 << 20):
            file.write(block)
    if size_of(part) < size:
        raise ConnectionError(f"{path} ended {size - size_of(part)} bytes early")


def fetch_part(hub, path, part, size):
    """Fetches a file's bytes, and goes on where a connection has broken. It gives up where nothing comes any more."""
    pauses = iter(PAUSES)
    while (before := max(0, size_of(part))) < size:
        try:
            append(hub, path, part, size)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                raise
            problem = error
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and local(error):
                raise
            problem = error
        else:
            return
        if size_of(part) > before:
            pauses = iter(PAUSES)
        pause = next(pauses, None)
        if pause is None:
            raise problem
        say(f"{path}: {problem}; again in {pause} s")
        time.sleep(pause)


def fetch_file(hub, repo, commit, folder, name, file):
    """Fetches a file unless it is there, and again where its checksum is wrong."""
    path = os.path.join(folder, name)
    if is_whole(path, file):
        return
    if size_of(path) >= 0:
        say(f"{repo}: {name} is damaged and fetched again")
        os.remove(path)
    part = os.path.join(folder, PARTS, part_of(name, file))
    for _ in range(TRIES):
        fetch_part(hub, f"/{repo}/resolve/{commit}/{name}", part, file["size"])
        if file["size"] == 0:
            open(part, "wb").close()
        if is_whole(part, file):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.replace(part, path)
            return
        say(f"{repo}: {name} is damaged and fetched again")
        os.remove(part)
    raise RuntimeError(f"{repo}: {name} came {TRIES} times with a checksum that is not the hub's")


def fetch(hub, repo, revision, options):
    """Brings one model to where it is whole and has its marker."""
    folder = os.path.join(options.to, repo.split("/")[-1])
    marker = read_marker(folder)
    wanted = {"repo": repo, "revision": revision, "ignore": sorted(options.ignore)}
    known = all(marker.get(key) == value for key, value in wanted.items())
    if known and not options.verify:
        gone = [name for name, file in marker["files"].items() if size_of(os.path.join(folder, name)) != file["size"]]
        if not gone:
            say(f"{repo}@{revision} is there: commit {marker['commit']}, {len(marker['files'])} files; nothing to do")
            return
        say(f"{repo}: {', '.join(gone)} is missing or has another size")

    # A branch may have moved on since: files that are mended must be of the commit that the others are of.
    commit, files = listing(hub, repo, marker["commit"] if known else revision, options.ignore)
    total = sum(file["size"] for file in files.values())
    os.makedirs(os.path.join(folder, PARTS), exist_ok=True)
    for part in set(os.listdir(os.path.join(folder, PARTS))) - {part_of(name, file) for name, file in files.items()}:
        os.remove(os.path.join(folder, PARTS, part))  # of another commit
    for name in marker.get("files", {}).keys() - files.keys():
        if size_of(os.path.join(folder, name)) >= 0:
            os.remove(os.path.join(folder, name))  # of what was here before: engines take all weights that they find
    missing = max(0, total - on_disk(folder))
    free = shutil.disk_usage(folder).free
    if missing > free:
        raise Final(f"{repo} needs {gigabytes(missing)} more, and {options.to} has {gigabytes(free)} free: make the volume larger (model.volume.size)")
    say(f"{repo}@{revision}: commit {commit}, {len(files)} files, {gigabytes(total)}, {gigabytes(missing)} of them to fetch")

    if os.path.exists(os.path.join(folder, MARKER)):
        os.remove(os.path.join(folder, MARKER))
    with Progress(repo, folder, total, options.every):
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            tasks = [pool.submit(fetch_file, hub, repo, commit, folder, name, file) for name, file in files.items()]
            try:
                for task in concurrent.futures.as_completed(tasks):
                    task.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    shutil.rmtree(os.path.join(folder, PARTS))
    write_marker(folder, {**wanted, "commit": commit, "files": files})
    say(f"{repo}@{revision} is whole: {len(files)} files with the hub's checksums, {gigabytes(total)}")


def local(error):
    """Whether an error is of the volume, and not of the network."""
    return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR)


def explain(error):
    """What a person can do about an error, or None where another run may get further."""
    token = "the token in HF_TOKEN" if os.environ.get("HF_TOKEN") else "no token (set model.download.token.secret)"
    if isinstance(error, urllib.error.HTTPError):
        code = error.headers.get("X-Error-Code", "")
        if code == "GatedRepo":
            return f"the repository is gated, and {token} does not open it: accept its license on the hub with the account of the token"
        if code == "RevisionNotFound":
            return "the repository has no such revision: see model.revision"
        if error.code in (401, 403, 404):
            return f"the hub shows no such repository to {token}: see whether its name is right and whether the token is valid and may read it"
    elif isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the volume is full: make it larger (model.volume.size)"
    elif isinstance(error, OSError) and local(error):
        return f"user {os.getuid()} may not write there: give it the folder, or export the share with write access"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="OWNER/NAME@REVISION")
    parser.add_argument("--to", required=True, help="folder that the models' folders are in")
    parser.add_argument("--ignore", action="append", default=[], metavar="PATTERN", help="files that are not fetched")
    parser.add_argument("--workers", type=int, default=4, help="files that are fetched at once")
    parser.add_argument("--verify", action="store_true", help="compare all checksums, even where an earlier run has")
    parser.add_argument("--every", type=float, default=10, metavar="SECONDS", help="how often progress is told")
    options = parser.parse_args()
    hub = Hub(os.environ.get("HF_ENDPOINT") or "https://huggingface.co", os.environ.get("HF_TOKEN", "").strip())
    for model in options.models:
        repo, _, revision = model.partition("@")
        try:
            fetch(hub, repo, revision or "main", options)
        except Final as error:
            say(f"error: {error}")
            return 3
        except Exception as error:  # of any library below: all of it is said, and what can be retried is
            advice = explain(error)
            say(f"error: {model}: {type(error).__name__}: {error}")
            say(f"error: {advice}" if advice else "the next run goes on from here")
            return 3 if advice else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
