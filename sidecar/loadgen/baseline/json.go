package baseline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"kvbooth/sidecar/api"
)

// ReadJSON reads an [api.Baseline] of at most 1 MiB, refuses unknown fields and
// everything that [Validate] refuses. An empty title becomes the name; rows
// without a speculation take the deployment's, else not_recorded; the kind is
// [KindImported], without a target. Rows come back sorted as with [ReadCSV]. What is refused gives
// an [api.FieldError]; other errors are those of r.
func ReadJSON(r io.Reader) (api.Baseline, error) {
	text, err := readBounded(r)
	if err != nil {
		return api.Baseline{}, err
	}
	var b api.Baseline
	if err := decodeStrictly(text, &b); err != nil {
		return api.Baseline{}, err
	}
	b.Kind, b.Target = KindImported, nil
	if b.Title == "" {
		b.Title = b.Name
	}
	for i := range b.Rows {
		if b.Rows[i].Speculation == "" {
			b.Rows[i].Speculation = rowSpeculation(b)
		}
	}
	if err := Validate(b); err != nil { // before sorting: errors name rows by their place
		return api.Baseline{}, err
	}
	slices.SortFunc(b.Rows, compareRows)
	return b, nil
}

// decodeStrictly reads one JSON value with no unknown fields and nothing after it.
func decodeStrictly(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return api.Refuse(cmp.Or(kind.Field, "baseline"), kind.Value, "a value of type "+kind.Type.String())
	case err != nil:
		return api.Refuse("baseline", "this JSON", fmt.Sprintf("a baseline as the API gives it (%v)", err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return api.Refuse("baseline", "text after the JSON", "one JSON object")
	}
	return nil
}
