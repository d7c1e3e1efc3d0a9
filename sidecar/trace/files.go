package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files are the files of one trace, in the order of time.
type Files struct {
	Names   []string
	Size    int64 // total size in bytes, if Regular
	Regular bool  // all files can be read more than once
}

// Find returns the files with the given names or patterns, such as trace.*.jsonl.gz, in the order of their first
// requests.
func Find(patterns ...string) (*Files, error) {
	f := &Files{Regular: true}
	for _, pattern := range patterns {
		names := []string{pattern}
		if _, err := os.Stat(pattern); err != nil && strings.ContainsAny(pattern, `*?[`) {
			names, _ = filepath.Glob(pattern) // a bad pattern matches nothing
			if len(names) == 0 {
				return nil, fmt.Errorf("%s: no file matches", pattern)
			}
		}
		for _, name := range names {
			info, err := os.Stat(name)
			switch {
			case err == nil && info.IsDir():
				err = errors.New("is a directory; name its files, such as " + filepath.Join(name, "*.jsonl.gz"))
			case err != nil:
				err = errors.Unwrap(err) // without the name, which is added below
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if slices.Contains(f.Names, name) {
				continue
			}
			f.Names = append(f.Names, name)
			f.Size += info.Size()
			f.Regular = f.Regular && info.Mode().IsRegular()
		}
	}
	if len(f.Names) > 1 && f.Regular {
		return f, f.sort()
	}
	return f, nil
}

// sort sorts the files by their first moments. Files without a moment come last.
func (f *Files) sort() error {
	firsts := map[string]float64{}
	for _, name := range f.Names {
		one := Files{Names: []string{name}}
		r, err := one.Open(Options{})
		if err != nil {
			return err
		}
		firsts[name] = r.firstMoment()
		_ = r.Close()
	}
	slices.SortStableFunc(f.Names, func(a, b string) int { return cmp.Compare(firsts[a], firsts[b]) })
	return nil
}

// Open reads the files from their beginning.
func (f *Files) Open(o Options) (*Reader, error) {
	r, err := newReader(o)
	if err != nil {
		return nil, err
	}
	r.waiting = f.Names
	if err := r.openNext(); err != nil {
		return nil, err
	}
	return r, nil
}

// String returns the names of the files, for many files only the first and the last.
func (f *Files) String() string {
	names := make([]string, len(f.Names))
	for i, name := range f.Names {
		names[i] = filepath.Base(name)
	}
	if n := len(names); n > 3 {
		return fmt.Sprintf("%s … %s (%d files)", names[0], names[n-1], n)
	}
	return strings.Join(names, ", ")
}

// openNext opens the next file. It returns io.EOF if there is none.
func (r *Reader) openNext() error {
	if len(r.waiting) == 0 {
		return io.EOF
	}
	name := r.waiting[0]
	r.waiting = r.waiting[1:]
	_ = r.Close()
	file, err := os.Open(filepath.Clean(name))
	if err != nil {
		return err
	}
	r.closer = file
	if r.several = r.several || len(r.waiting) > 0; r.several {
		r.file = filepath.Base(name)
	}
	if err := r.begin(file); err != nil {
		_ = r.Close()
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Close closes the current file, if the reader opened it.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	file := r.closer
	r.closer = nil
	return file.Close()
}
