package pack

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Program packs a program and texts into a folder of an archive, which is named after it, .tar.gz. The same files and
// the same date give the same bytes.
func Program(to string, date time.Time, program string, texts ...string) (Archive, error) {
	folder := strings.TrimSuffix(filepath.Base(to), ".tar.gz")
	files := []packedFile{{program, path.Join(folder, filepath.Base(program)), 0o755}}
	for _, text := range texts {
		files = append(files, packedFile{text, path.Join(folder, filepath.Base(text)), 0o644})
	}
	return writeTar(to, date, files)
}

// Chart packs the folder of a Helm chart, as `helm package` does but with one date, into a .tgz. The same files and the
// same date give the same bytes.
func Chart(to string, date time.Time, folder string) (Archive, error) {
	var files []packedFile
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(filepath.Dir(folder), name)
		files = append(files, packedFile{name, filepath.ToSlash(rel), 0o644})
		return err
	})
	if err != nil {
		return Archive{}, err
	}
	return writeTar(to, date, files)
}

// packedFile is a file with its name and its mode in an archive.
type packedFile struct {
	from, name string
	mode       int64
}

// writeTar writes a compressed archive of files with one date.
func writeTar(to string, date time.Time, files []packedFile) (Archive, error) {
	out, err := os.Create(to)
	if err != nil {
		return Archive{}, err
	}
	zipped := gzip.NewWriter(out)
	w := tar.NewWriter(zipped)
	for _, file := range files {
		text, err := os.ReadFile(file.from)
		if err != nil {
			return Archive{}, errors.Join(err, out.Close())
		}
		header := &tar.Header{Name: file.name, Size: int64(len(text)), Mode: file.mode, ModTime: date}
		if err := w.WriteHeader(header); err != nil {
			return Archive{}, errors.Join(err, out.Close())
		}
		if _, err := w.Write(text); err != nil {
			return Archive{}, errors.Join(err, out.Close())
		}
	}
	if err := errors.Join(w.Close(), zipped.Close(), out.Close()); err != nil {
		return Archive{}, err
	}
	return Describe(to)
}

// Describe returns the size and the hash of a written archive.
func Describe(file string) (Archive, error) {
	text, err := os.ReadFile(file)
	sum := sha256.Sum256(text)
	return Archive{Path: file, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}, err
}

// SumsFile is the name of the file with the hashes of all archives.
const SumsFile = "SHA256SUMS"

// WriteSums writes [SumsFile], which `sha256sum --check` reads in its folder, and prints the archives.
func WriteSums(dir string, archives []Archive, out io.Writer) error {
	var text strings.Builder
	slices.SortFunc(archives, func(a, b Archive) int { return strings.Compare(a.Path, b.Path) })
	for _, a := range archives {
		fmt.Fprintln(out, a)
		fmt.Fprintf(&text, "%s  %s\n", a.SHA256, filepath.Base(a.Path))
	}
	return os.WriteFile(filepath.Join(dir, SumsFile), []byte(text.String()), 0o644)
}
