package pack

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Program packs a program and texts into a folder of an archive, which is named after it, .tar.gz. The same files and
// the same date give the same bytes.
func Program(to string, date time.Time, program string, texts ...string) (a Archive, err error) {
	out, err := os.Create(to)
	if err != nil {
		return a, err
	}
	zipped := gzip.NewWriter(out)
	w := tar.NewWriter(zipped)
	for _, file := range append([]string{program}, texts...) {
		text, err := os.ReadFile(file)
		if err != nil {
			return a, errors.Join(err, out.Close())
		}
		header := &tar.Header{
			Name: path.Join(strings.TrimSuffix(filepath.Base(to), ".tar.gz"), filepath.Base(file)),
			Size: int64(len(text)), Mode: 0o644, ModTime: date,
		}
		if file == program {
			header.Mode = 0o755
		}
		if err := w.WriteHeader(header); err != nil {
			return a, errors.Join(err, out.Close())
		}
		if _, err := w.Write(text); err != nil {
			return a, errors.Join(err, out.Close())
		}
	}
	if err := errors.Join(w.Close(), zipped.Close(), out.Close()); err != nil {
		return a, err
	}
	return Describe(to)
}

// Describe returns the size and the hash of a written archive.
func Describe(file string) (Archive, error) {
	text, err := os.ReadFile(file)
	sum := sha256.Sum256(text)
	return Archive{Path: file, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}, err
}

// WriteSums writes the file SHA256SUMS, which `sha256sum --check` reads in its folder, and prints the archives.
func WriteSums(dir string, archives []Archive, out io.Writer) error {
	var text strings.Builder
	for _, a := range archives {
		fmt.Fprintln(out, a)
		fmt.Fprintf(&text, "%s  %s\n", a.SHA256, filepath.Base(a.Path))
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(text.String()), 0o644)
}
