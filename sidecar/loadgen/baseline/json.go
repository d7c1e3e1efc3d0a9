package baseline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// ReadJSON reads an [api.Baseline] of at most 1 MiB, or the results of a load generator in [formats], which its fields
// identify. A text with a field "rows" is always read as a baseline.
//
// Of an api.Baseline it refuses unknown fields, everything that [Validate] refuses, and a run other than the zero
// value. A given name replaces the file's. An empty title becomes the name. Rows without a speculation take the
// deployment's, else not_recorded. The kind is [KindImported], without a target and without sustained levels.
//
// No other program records how requests were routed. run is the mode of all its rows, and is refused without a mode;
// without a speculation it is [api.SpeculationNotRecorded]. A value is taken where its definition is this product's;
// the notes name the others.
//
// Rows are sorted as with [ReadCSV]. Invalid input returns an [api.FieldError] that names the line and the JSON path;
// other errors are those of r.
func ReadJSON(r io.Reader, name string, run api.ModeState) (api.Baseline, error) {
	text, err := readBounded(r)
	if err != nil {
		return api.Baseline{}, err
	}
	if err := refuseOthers(text); err != nil {
		return api.Baseline{}, err
	}
	if p := formatOf(text); p != nil {
		return readResults(p, text, name, run)
	}
	var b api.Baseline
	if err := decodeStrictly(text, &b); err != nil {
		var refused *api.FieldError
		if errors.As(err, &refused) && strings.HasPrefix(refused.Allowed, asTheAPI) {
			refused.Allowed += "; or a result of " + formatNames()
		}
		return api.Baseline{}, err
	}
	if run != (api.ModeState{}) {
		return api.Baseline{}, refuseRun(run)
	}
	b.Name = cmp.Or(name, b.Name)
	b.Kind, b.Target, b.Sustained, b.Advantages = KindImported, nil, nil, nil
	if b.Title == "" {
		b.Title = b.Name
	}
	for i := range b.Rows {
		if b.Rows[i].Speculation == "" {
			b.Rows[i].Speculation = rowSpeculation(b)
		}
	}
	if err := Validate(b); err != nil { // before sorting: errors name rows by their place
		return api.Baseline{}, atLine(text, err)
	}
	slices.SortFunc(b.Rows, compareRows)
	return b, nil
}

const asTheAPI = "a baseline as the API gives it"

// refuseRun refuses a mode for a file whose rows have their own.
func refuseRun(run api.ModeState) error {
	if run.Mode != "" {
		return api.Refuse("mode", quote(string(run.Mode)), "leave it out: each row of this file has its own mode")
	}
	return api.Refuse("speculation", quote(string(run.Speculation)), "leave it out: this file already contains it")
}

// decodeStrictly reads one JSON value with no unknown fields and nothing after it.
func decodeStrictly(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(api.PresentNames(text)))
	d.DisallowUnknownFields()
	return decode(d, text, to)
}

// decode reads the one value of a text.
func decode(d *json.Decoder, text []byte, to any) error {
	err := d.Decode(to)
	var (
		kind   *json.UnmarshalTypeError
		syntax *json.SyntaxError
	)
	switch {
	case errors.As(err, &kind):
		return api.Refuse(lineName(text, kind.Offset)+", "+cmp.Or(kind.Field, "baseline"), kind.Value,
			"a value of type "+kind.Type.String())
	case errors.As(err, &syntax):
		return api.Refuse(lineName(text, syntax.Offset)+", baseline", "this JSON", "JSON: "+syntax.Error())
	case err != nil:
		return refuseUnread(text, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return api.Refuse(lineName(text, d.InputOffset())+", baseline", "text after the JSON", "one JSON object")
	}
	return nil
}

// refuseUnread explains the errors for which encoding/json has no type: an unknown field, whose line is known where no
// other field has its name, and a truncated text.
func refuseUnread(text []byte, err error) error {
	line := lineName(text, int64(len(text)))
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		line = ""
		if at := offsetsOf(text, strings.Trim(name, `"`)); len(at) == 1 {
			line = lineName(text, at[0])
		}
	}
	return api.Refuse(strings.TrimPrefix(line+", baseline", ", "), "this JSON", fmt.Sprintf(asTheAPI+" (%v)", err))
}

// atLine prefixes the path of an invalid field with its line, or with the line of its parent.
func atLine(text []byte, err error) error {
	var refused *api.FieldError
	if !errors.As(err, &refused) {
		return err
	}
	found, offset := "", int64(-1)
	walk(json.NewDecoder(bytes.NewReader(text)), "", text, func(path string, at int64) {
		if len(path) >= len(found) && isWithin(refused.Field, path) {
			found, offset = path, at
		}
	})
	if offset < 0 {
		return err
	}
	return api.Refuse(lineName(text, offset)+", "+refused.Field, refused.Value, refused.Allowed)
}

// isWithin reports whether a path equals another one, or leads into it.
func isWithin(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && other != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// offsetsOf returns the offsets of the values of all fields with a name.
func offsetsOf(text []byte, name string) (offsets []int64) {
	walk(json.NewDecoder(bytes.NewReader(text)), "", text, func(path string, at int64) {
		if path[strings.LastIndex(path, ".")+1:] == name {
			offsets = append(offsets, at)
		}
	})
	return offsets
}

// walk calls visit with the path and the offset of every value, parents first. It stops at the first text that is not
// JSON.
func walk(d *json.Decoder, path string, text []byte, visit func(path string, at int64)) bool {
	at := d.InputOffset()
	for at < int64(len(text)) && strings.ContainsRune(" \t\r\n,:", rune(text[at])) {
		at++
	}
	visit(path, at)
	token, err := d.Token()
	if err != nil {
		return false
	}
	open, _ := token.(json.Delim)
	if open == 0 {
		return true
	}
	for i := 0; d.More(); i++ {
		below := fmt.Sprintf("%s[%d]", path, i)
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return false
			}
			below = strings.TrimPrefix(fmt.Sprintf("%s.%v", path, key), ".")
		}
		if !walk(d, below, text, visit) {
			return false
		}
	}
	_, err = d.Token() // the closing delimiter
	return err == nil
}

// lineName names the line of an offset.
func lineName(text []byte, offset int64) string {
	return fmt.Sprintf("line %d", 1+bytes.Count(text[:min(max(offset, 0), int64(len(text)))], []byte("\n")))
}
