package pack

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Archive describes a written archive.
type Archive struct {
	Path   string
	Size   int64  // size in bytes
	SHA256 string // hash of the content, in hexadecimal
}

// String formats the archive as a line for the terminal.
func (a Archive) String() string {
	return fmt.Sprintf("%s: %.1f MB, SHA-256 %s", a.Path, float64(a.Size)/1e6, a.SHA256)
}

// zipFolder packs a folder under its own name. Names are sorted and have the same time, so that the same files give
// the same bytes. Files whose names begin with that of the executable are executable.
func zipFolder(folder, to string, date time.Time, executable string) (a Archive, err error) {
	file, err := os.Create(to)
	if err != nil {
		return a, err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			_ = os.Remove(to)
		}
	}()
	sum := sha256.New()
	w := zip.NewWriter(io.MultiWriter(file, sum))
	err = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{
			Name: path.Join(filepath.Base(folder), filepath.ToSlash(rel)), Method: zip.Deflate, Modified: date,
		}
		header.SetMode(mode(rel, executable))
		return add(w, header, name)
	})
	if err := errors.Join(err, w.Close()); err != nil {
		return a, fmt.Errorf("%s: %w", to, err)
	}
	info, err := file.Stat()
	if err != nil {
		return a, err
	}
	return Archive{Path: to, Size: info.Size(), SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// mode returns the mode of a file of the app, on every system.
func mode(rel, executable string) fs.FileMode {
	if strings.HasPrefix(rel, executable+"_") {
		return 0o755
	}
	return 0o644
}

func add(w *zip.Writer, header *zip.FileHeader, name string) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := w.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return err
}
