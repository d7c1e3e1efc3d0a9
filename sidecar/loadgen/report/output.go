package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// Formats lists the file formats of a kind of report.
type Formats []api.ReportFormat

// CSV is the format of comma-separated values. The API offers no reports in it.
const CSV api.ReportFormat = "csv"

// JSONL is the format of recorded traffic, a request in each line.
const JSONL api.ReportFormat = "jsonl"

// The formats of each kind of report. The CSV of a run holds its turns, not its report.
var (
	RunFormats    = Formats{api.ReportJSON, CSV, api.ReportHTML}
	ResultFormats = Formats(api.ReportFormats)
	TraceFormats  = Formats{api.ReportJSON}
	RecordFormats = Formats{JSONL}
	ShadowFormats = Formats{api.ReportJSON, CSV, api.ReportMarkdown, api.ReportHTML}
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
	format := api.ReportFormat(strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), "."))
	return format, slices.Contains(f, format)
}

// Outputs holds the open files of --output. A file keeps its former content until [Outputs.Write].
type Outputs []*os.File

// OpenOutputs opens the files for writing, so that an unwritable one is reported before a run and not after it. The
// error is an *[api.FieldError]. formats appears in its text only.
func OpenOutputs(formats Formats, paths []string) (o Outputs, err error) {
	for _, path := range paths {
		f, err := os.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			_ = o.Close()
			return nil, formats.Unwritable(path, err)
		}
		o = append(o, f)
	}
	return o, nil
}

// Unwritable returns the *[api.FieldError] for a file that cannot be written.
func (f Formats) Unwritable(path string, err error) error {
	if inner := new(os.PathError); errors.As(err, &inner) {
		err = inner.Err // the field error names the path already
	}
	return api.Refuse("output", path, fmt.Sprintf("%s that can be written; %v", f.Allowed(), err))
}

// Close closes the files. A second call has no effect.
func (o Outputs) Close() error {
	var all []error
	for _, f := range o {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// Names returns the absolute paths of the files.
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

// Write truncates each file, calls write with the format of its name, and closes it. The error names every file that
// was not written.
func (o Outputs) Write(write func(w io.Writer, format api.ReportFormat) error) error {
	var all []error
	for _, f := range o {
		err := f.Truncate(0)
		if err == nil {
			format, _ := Formats{}.Of(f.Name()) // the configuration has checked the format
			err = write(api.PrintableWriter(f), format)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			all = append(all, fmt.Errorf("output: %s could not be written: %w", f.Name(), err))
		}
	}
	return errors.Join(all...)
}
