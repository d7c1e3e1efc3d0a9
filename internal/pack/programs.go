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

// ProgramNames are the programs that have archives and images of their own.
var ProgramNames = []string{"loadgen", "booth"}

// ProgramPlatforms are the platforms that [Programs] makes archives for. Images are for those of Linux.
var ProgramPlatforms = []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// ProgramOptions configure [Programs].
type ProgramOptions struct {
	Dir       string   // output directory
	Texts     []string // paths of files to add to each archive
	Version   string
	Date      time.Time
	Platforms []Platform
	Build     func(p Platform, name, to string) error // builds a program into a file
	Out       io.Writer                               // receives progress
}

// Folder returns the folder of a program that is built for a platform.
func (o ProgramOptions) Folder(p Platform, name string) string {
	return filepath.Join(o.Dir, "programs", name, p.OS+"_"+p.Arch)
}

// Programs builds every program for every platform and packs each into an archive, which it prints.
func Programs(o ProgramOptions) (archives []Archive, err error) {
	if err := os.RemoveAll(filepath.Join(o.Dir, "programs")); err != nil {
		return nil, err
	}
	for _, name := range ProgramNames {
		for _, p := range o.Platforms {
			fmt.Fprintf(o.Out, "building %s for %s\n", name, p)
			file := filepath.Join(o.Folder(p, name), name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return nil, err
			}
			if err := o.Build(p, name, file); err != nil {
				return nil, fmt.Errorf("%s for %s: %w", name, p, err)
			}
			folder := strings.Join([]string{name, o.Version, p.OS, p.Arch}, "-")
			to := filepath.Join(o.Dir, folder+".tar.gz")
			if err := tarFiles(to, folder, o.Date, append([]string{file}, o.Texts...)); err != nil {
				return nil, fmt.Errorf("%s: %w", to, err)
			}
			a, err := Describe(to)
			if err != nil {
				return nil, err
			}
			fmt.Fprintln(o.Out, a)
			archives = append(archives, a)
		}
	}
	return archives, nil
}

// tarFiles packs files, of which the first is a program, into a folder of an archive.
func tarFiles(to, folder string, date time.Time, files []string) (err error) {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	zipped := gzip.NewWriter(out)
	w := tar.NewWriter(zipped)
	defer func() { err = errors.Join(err, w.Close(), zipped.Close(), out.Close()) }()
	mode := int64(0o755)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		header := &tar.Header{
			Name: path.Join(folder, filepath.Base(file)), Size: int64(len(text)), Mode: mode, ModTime: date,
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		mode = 0o644
	}
	return nil
}

// Describe returns the size and the hash of a written archive.
func Describe(file string) (Archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return Archive{}, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	return Archive{Path: file, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// WriteSums writes the file SHA256SUMS, which `sha256sum --check` reads in its folder.
func WriteSums(dir string, archives []Archive) error {
	var text strings.Builder
	for _, a := range archives {
		fmt.Fprintf(&text, "%s  %s\n", a.SHA256, filepath.Base(a.Path))
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(text.String()), 0o644)
}
