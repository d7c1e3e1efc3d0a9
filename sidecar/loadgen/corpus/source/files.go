package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxDocument  = 16 << 20 // bytes
	maxDocuments = 5000
	maxTotal     = 128 << 20 // bytes of all documents
)

// place is a place with documents.
type place interface {
	// name returns the name of the place for messages.
	name() string

	// documents returns all documents. The error means that the place cannot be read;
	// errUnchanged means that it has not changed since the last successful call.
	documents(ctx context.Context) ([]document, error)
}

var errUnchanged = errors.New("nothing has changed")

// budget bounds the documents read from a place.
type budget struct {
	documents int
	bytes     int64
}

// refuse returns the reason why a document of that size is not read, "" where it is read.
func (b *budget) refuse(size int64) string {
	switch {
	case size > maxDocument:
		return fmt.Sprintf("it has %d bytes; the limit is %d", size, maxDocument)
	case b.documents >= maxDocuments:
		return fmt.Sprintf("it is not among the first %d documents", maxDocuments)
	case b.bytes+size > maxTotal:
		return fmt.Sprintf("with it there would be more than %d bytes", maxTotal)
	}
	b.documents++
	b.bytes += size
	return ""
}

// folder is a local directory, or a single file. It is not safe for concurrent use.
type folder struct {
	path string
	seen [sha256.Size]byte // hash of the documents at the last reading
}

func (f *folder) name() string { return f.path }

// documents reads all files below the directory. It skips names that begin with a dot, and
// links to anything but files, so that a mounted ConfigMap is read once.
func (f *folder) documents(ctx context.Context) ([]document, error) {
	all, err := f.walk(ctx)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	for _, d := range all {
		fmt.Fprintf(hash, "%q%q%d", d.name, d.problem, len(d.data))
		_, _ = hash.Write(d.data) // never fails
	}
	found := [sha256.Size]byte(hash.Sum(nil))
	if found == f.seen {
		return nil, errUnchanged
	}
	f.seen = found
	return all, nil
}

func (f *folder) walk(ctx context.Context) (all []document, err error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, bare(err)
	}
	b := &budget{}
	if !info.IsDir() {
		return []document{f.read(f.path, filepath.Base(f.path), b)}, nil
	}
	root, err := filepath.EvalSymlinks(f.path) // WalkDir does not follow a link
	if err != nil {
		return nil, bare(err)
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case path == root:
			return err
		case strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		name, _ := filepath.Rel(root, path) // cannot fail below root
		name = filepath.ToSlash(name)
		if err != nil {
			all = append(all, document{name: name, problem: bare(err).Error()})
			return nil
		}
		if !entry.IsDir() {
			all = append(all, f.read(path, name, b))
		}
		return nil
	})
	return all, bare(err)
}

func (f *folder) read(path, name string, b *budget) document {
	d := document{name: name}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		d.problem = bare(err).Error()
		return d
	case !info.Mode().IsRegular():
		d.problem = "not a file"
		return d
	}
	if d.problem = b.refuse(info.Size()); d.problem != "" {
		return d
	}
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		d.data, err = io.ReadAll(io.LimitReader(file, maxDocument)) // it may have grown
	}
	if err != nil {
		d.problem = bare(err).Error()
	}
	return d
}

// bare removes the path from an error, since messages name it already.
func bare(err error) error {
	if inner := new(fs.PathError); errors.As(err, &inner) {
		return inner.Err
	}
	return err
}
