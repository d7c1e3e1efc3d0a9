package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// AllowedOutput says what --output takes.
const AllowedOutput = "a file whose name ends in .json, .csv or .html"

// AllowedReport says what --output takes where a report on a sweep or on two results is written.
const AllowedReport = "a file whose name ends in .json, .tsv, .md or .html"

// FormatOf is the format of such a report by the name of its file.
func FormatOf(path string) (api.ReportFormat, bool) {
	f := api.ReportFormat(strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), "."))
	return f, slices.Contains(api.ReportFormats, f)
}

// extensions are those of the files that can be written.
var extensions = []string{".json", ".csv", ".html"}

// IsOutput says whether a file's name tells what to write into it.
func IsOutput(path string) bool {
	return slices.Contains(extensions, strings.ToLower(filepath.Ext(path)))
}

// Outputs are the files that a run leaves, open from before its start to its end. An
// earlier file stays as it is until then.
type Outputs []*os.File

// OpenOutputs opens the files, so that one that cannot be written is found before a run
// and not after it. The second result is the path that the error is about.
func OpenOutputs(paths []string) (o Outputs, bad string, err error) {
	for _, path := range paths {
		f, err := os.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			if inner := new(os.PathError); errors.As(err, &inner) {
				err = inner.Err // the path is told beside it
			}
			return nil, path, errors.Join(err, o.Close())
		}
		o = append(o, f)
	}
	return o, "", nil
}

// Close closes the files; a second time it does nothing.
func (o Outputs) Close() error {
	var all []error
	for _, f := range o {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// Names are the files with their whole paths.
func (o Outputs) Names() []string {
	names := make([]string, len(o))
	for i, f := range o {
		var err error
		if names[i], err = filepath.Abs(f.Name()); err != nil {
			names[i] = f.Name()
		}
	}
	return names
}

// Write writes each file by what its name ends in, and closes it; turns writes the CSV
// of the run's turns. The error names every file that was not written.
func (o Outputs) Write(r *Report, turns func(io.Writer) error) error {
	return o.each(func(f *os.File) error {
		switch strings.ToLower(filepath.Ext(f.Name())) {
		case ".json":
			e := json.NewEncoder(f)
			e.SetIndent("", "  ")
			return e.Encode(r)
		case ".csv":
			return turns(f)
		}
		return r.WriteHTML(f)
	})
}

// WriteReports writes a report into each file, in the format that its name ends in, and
// closes it. The error names every file that was not written.
func (o Outputs) WriteReports(write func(io.Writer, api.ReportFormat) error) error {
	return o.each(func(f *os.File) error {
		format, _ := FormatOf(f.Name()) // as the configuration has made sure
		return write(f, format)
	})
}

// WriteShadow writes the shadow of a trace into each file, in the format that its name ends in,
// and closes it. The error names every file that was not written.
func (o Outputs) WriteShadow(r *Shadow) error {
	return o.each(func(f *os.File) error {
		format, _ := ShadowFormat(f.Name()) // as the configuration has made sure
		return r.Write(f, format)
	})
}

// each has every file written anew, and closes it.
func (o Outputs) each(write func(*os.File) error) error {
	var all []error
	for _, f := range o {
		err := f.Truncate(0)
		if err == nil {
			err = write(f)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			all = append(all, fmt.Errorf("output: %s could not be written: %w", f.Name(), err))
		}
	}
	return errors.Join(all...)
}
