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

// Formats are those that a kind of report can be written in.
type Formats []api.ReportFormat

// CSV is a table of comma-separated values, which the API has no reports in.
const CSV api.ReportFormat = "csv"

// The formats of each kind. The CSV of a run is that of its turns.
var (
	RunFormats    = Formats{api.ReportJSON, CSV, api.ReportHTML}
	ResultFormats = Formats(api.ReportFormats)
	ShadowFormats = Formats{api.ReportJSON, CSV, api.ReportMarkdown, api.ReportHTML}
)

// Allowed says which files --output takes.
func (f Formats) Allowed() string {
	last := len(f) - 1
	text := "a file whose name ends in"
	for i, format := range f[:last] {
		if i > 0 {
			text += ","
		}
		text += " ." + string(format)
	}
	return text + " or ." + string(f[last])
}

// Of is the format of a file by its name; false: it is none of them.
func (f Formats) Of(path string) (api.ReportFormat, bool) {
	format := api.ReportFormat(strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), "."))
	return format, slices.Contains(f, format)
}

// Outputs are the files that a run leaves, open from before its start to its end. An
// earlier file stays as it is until then.
type Outputs []*os.File

// OpenOutputs opens files of these formats, so that one that cannot be written is found before a run
// and not after it. An error is an *[api.FieldError].
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

// Unwritable is the refusal of a file that cannot be written.
func (f Formats) Unwritable(path string, err error) error {
	if inner := new(os.PathError); errors.As(err, &inner) {
		err = inner.Err // the refusal names the path already
	}
	return api.Refuse("output", path, fmt.Sprintf("%s that can be written; %v", f.Allowed(), err))
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

// Write has every file written anew in the format that its name ends in, and closes it. The error names every file that
// was not written.
func (o Outputs) Write(write func(w io.Writer, format api.ReportFormat) error) error {
	var all []error
	for _, f := range o {
		err := f.Truncate(0)
		if err == nil {
			format, _ := Formats{}.Of(f.Name()) // one of those that the configuration allows
			err = write(f, format)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			all = append(all, fmt.Errorf("output: %s could not be written: %w", f.Name(), err))
		}
	}
	return errors.Join(all...)
}
