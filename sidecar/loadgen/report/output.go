package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
)

// Formats lists the file formats of a kind of report.
type Formats []api.ReportFormat

// CSV is the format of comma-separated values. The API offers no reports in it.
const CSV api.ReportFormat = "csv"

// JSONL is the format of recorded traffic, a request in each line.
const JSONL api.ReportFormat = "jsonl"

// Further formats of files, which the API does not offer.
const (
	JUnit      api.ReportFormat = "xml"        // conditions or figures as test cases
	Prometheus api.ReportFormat = "prom"       // the figures of a run in Prometheus' text format
	Series     api.ReportFormat = "series.csv" // the figures of a run over time
)

// The formats of each kind of report. The CSV of a run holds its turns, not its report.
var (
	RunFormats     = Formats{api.ReportJSON, CSV, api.ReportHTML, JUnit, Prometheus, Series}
	ResultFormats  = Formats(api.ReportFormats)
	CompareFormats = append(slices.Clone(ResultFormats), JUnit)
	TraceFormats   = Formats{api.ReportJSON}
	RecordFormats  = Formats{JSONL}
	ChurnFormats   = Formats{api.ReportJSON, api.ReportMarkdown}
	ShadowFormats  = Formats{api.ReportJSON, CSV, api.ReportMarkdown, api.ReportHTML}
)

// Allowed describes the file names that --output accepts.
func (f Formats) Allowed() string {
	last := len(f) - 1
	text := "a file whose name ends in"
	if last == 0 {
		return text + " ." + string(f[0])
	}
	for i, format := range f[:last] {
		if i > 0 {
			text += ","
		}
		text += " ." + string(format)
	}
	return text + " or ." + string(f[last])
}

// Of returns the format of a file by the ending of its name. It returns false if f does not contain the format.
func (f Formats) Of(path string) (api.ReportFormat, bool) {
	series := f == nil || slices.Contains(f, Series)
	if series && strings.HasSuffix(strings.ToLower(filepath.Base(path)), string(Series)) {
		return Series, true
	}
	format := api.ReportFormat(strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), "."))
	return format, slices.Contains(f, format)
}

// Outputs holds the paths of --output. A file keeps its former content until [Outputs.Write].
type Outputs []string

// OpenOutputs checks that the files can be written, so that an unwritable one is reported before a run and not after
// it. It leaves no file behind that was not there. The error is an *[api.FieldError]. formats appears in its text only.
func OpenOutputs(formats Formats, paths []string) (Outputs, error) {
	for _, path := range paths {
		if kubernetes.IsConfigMap(path) {
			if err := kubernetes.WriteConfigMap(path, nil, "All"); err != nil {
				return nil, formats.Unwritable(path, err)
			}
			continue
		}
		_, err := os.Stat(path)
		isNew := errors.Is(err, os.ErrNotExist)
		f, err := os.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_CREATE, 0o644)
		if err == nil {
			err = f.Close()
		}
		if err == nil && isNew {
			err = os.Remove(path)
		}
		if err != nil {
			return nil, formats.Unwritable(path, err)
		}
	}
	return paths, nil
}

// Unwritable returns the *[api.FieldError] for a file that cannot be written.
func (f Formats) Unwritable(path string, err error) error {
	if inner := new(os.PathError); errors.As(err, &inner) {
		err = inner.Err // the field error names the path already
	}
	return api.Refuse("output", path, fmt.Sprintf("%s that can be written; %v", f.Allowed(), err))
}

// Names returns the absolute paths of the files.
func (o Outputs) Names() []string {
	names := make([]string, len(o))
	for i, path := range o {
		if names[i] = path; kubernetes.IsConfigMap(path) {
			continue
		}
		var err error
		if names[i], err = filepath.Abs(path); err != nil {
			names[i] = path
		}
	}
	return names
}

// Write calls write for each file with the format of its name. A file appears, or replaces its former content, when it
// is complete. The error names every file that was not written.
func (o Outputs) Write(write func(w io.Writer, format api.ReportFormat) error) error {
	var all []error
	for _, path := range o {
		format, _ := Formats(nil).Of(path) // the configuration has checked the format
		err := replace(path, func(w io.Writer) error { return write(api.PrintableWriter(w), format) })
		if err != nil {
			all = append(all, fmt.Errorf("output: %s could not be written: %w", path, err))
		}
	}
	return errors.Join(all...)
}

// replace writes a file beside another one and then renames it. A file that cannot be replaced, such as a device or one
// in a folder that is read only, is written in place. The text of a key of a ConfigMap is sent when it is complete.
func replace(path string, write func(io.Writer) error) error {
	if kubernetes.IsConfigMap(path) {
		var text bytes.Buffer
		if err := write(&text); err != nil {
			return err
		}
		return kubernetes.WriteConfigMap(path, text.Bytes())
	}
	to := path
	if linked, err := filepath.EvalSymlinks(path); err == nil {
		to = linked
	}
	mode, inPlace := os.FileMode(0o644), false
	if info, err := os.Stat(to); err == nil {
		mode, inPlace = info.Mode().Perm(), !info.Mode().IsRegular()
	}
	const flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	partial := to + ".partial"
	var f *os.File
	var err error
	if !inPlace {
		f, err = os.OpenFile(partial, flags, mode)
		inPlace = err != nil
	}
	if inPlace {
		if f, err = os.OpenFile(to, flags, mode); err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Rename(partial, to)
	}
	if err != nil {
		_ = os.Remove(partial)
	}
	return err
}
