package baseline

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// attribute is one "# key: value" line of a file.
type attribute struct {
	key   string
	path  string // in a baseline's JSON
	place []int
}

var attributes = attributesOf(
	"title", "deployment.kind", "deployment.engine", "deployment.model", "deployment.gpu", "deployment.workers",
	"deployment.tensor_parallel", "deployment.speculation", "deployment.dynamo", "deployment.kubernetes",
	"deployment.worker_image", "deployment.serving", "deployment.block_size", "deployment.max_batch_size",
	"deployment.max_num_tokens", "deployment.chunked_prefill", "deployment.overlap_scheduler",
	"deployment.kv_cache_dtype", "deployment.free_gpu_memory_fraction", "deployment.gpu_hour", "workload",
	"provenance.runs",
	"provenance.region", "provenance.interconnect", "provenance.services", "provenance.between_modes",
	"provenance.printed_levels", "provenance.turns",
)

func attributesOf(paths ...string) (all []attribute) {
	for _, path := range paths {
		key := path[strings.LastIndex(path, ".")+1:]
		all = append(all, attribute{key, path, place(reflect.TypeFor[api.Baseline](), path)})
	}
	return all
}

// noteKey marks a line of the notes, whatever its content.
const noteKey = "note"

// in returns a pointer to the attribute of a baseline.
func (a *attribute) in(b *api.Baseline) any {
	return reflect.ValueOf(b).Elem().FieldByIndex(a.place).Addr().Interface()
}

// most returns the largest number of an attribute that is a number: a share, or a price in dollars.
func (a *attribute) most() float64 {
	if a.key == "gpu_hour" {
		return maxPrice
	}
	return 1
}

var targetKinds = []api.TargetKind{api.TargetReal, api.TargetSimulated, api.TargetMocked, api.TargetUnknown}

// get formats the attribute; empty: it is not known.
func (a *attribute) get(b *api.Baseline) string {
	switch v := a.in(b).(type) {
	case *string:
		return *v
	case *api.Speculation:
		return string(*v)
	case *api.TargetKind:
		return string(*v)
	case *int:
		return count(*v)
	case *float64:
		if *v == 0 {
			return ""
		}
		return formatShifted(*v, 0)
	case **bool:
		if *v == nil {
			return ""
		}
		return strconv.FormatBool(**v)
	case **api.WorkloadShape:
		if *v == nil {
			return ""
		}
	default:
		if reflect.ValueOf(v).Elem().Len() == 0 { // a list
			return ""
		}
	}
	text, _ := json.Marshal(a.in(b)) // cannot fail: Validate refused what has no JSON
	return string(text)
}

// set parses the attribute, and reports whether the text is allowed, and what is.
func (a *attribute) set(b *api.Baseline, text string) (allowed string, ok bool) {
	switch v := a.in(b).(type) {
	case *string:
		*v = text
		ok, allowed = validateLine(a.key, text) == nil, fmt.Sprintf("one line of at most %d characters", maxText)
	case *api.Speculation:
		*v = api.Speculation(text)
		ok, allowed = slices.Contains(speculations, *v), oneOf(speculations)
	case *api.TargetKind:
		*v = api.TargetKind(text)
		ok, allowed = slices.Contains(targetKinds, *v), oneOf(targetKinds)
	case *int:
		ok, allowed = setWhole(v, text, 1, maxSetting), wholeAllowed(1, maxSetting)
	case *float64:
		n, err := parseShifted(text, 0)
		*v = n
		ok, allowed = err == nil && n > 0 && n <= a.most(), fmt.Sprintf("a number above 0, up to %v", a.most())
	case **bool:
		*v = new(text == "true")
		ok, allowed = text == "true" || text == "false", "true or false"
	case **api.WorkloadShape:
		*v = new(api.WorkloadShape)
		ok = decodeStrictly([]byte(text), *v) == nil && validateWorkload(**v) == nil
		allowed = `JSON such as {"turns":{"min":5,"max":5},"max_tokens":1024}`
	case *[]api.Source:
		ok = decodeStrictly([]byte(text), v) == nil && validateRuns(*v) == nil
		allowed = `JSON such as [{"file":"sweep.tsv","date":"2026-02-17T12:52:00Z"}]`
	case *[]int:
		ok = decodeStrictly([]byte(text), v) == nil && validatePrintedLevels(*v) == nil
		allowed = "JSON such as [60,80,100], in ascending order"
	case *[]api.RecordedTurn:
		ok = decodeStrictly([]byte(text), v) == nil && validateTurns(*v) == nil
		allowed = `JSON such as [{"input_tokens":3500,"output_tokens":555,"latency":37.1}]`
	}
	return allowed, ok
}

// validate returns an [api.FieldError], whose field is the path in the JSON, if the attribute's value in b is not
// allowed. An empty value (zero or nil) means that the attribute is not known, and is allowed, as is any bool.
func (a *attribute) validate(b *api.Baseline) error {
	switch v := a.in(b).(type) {
	case *string:
		return validateLine(a.path, *v)
	case *api.Speculation:
		if *v != "" && !slices.Contains(speculations, *v) {
			return api.Refuse(a.path, quote(string(*v)), oneOf(speculations))
		}
	case *api.TargetKind:
		if *v != "" && !slices.Contains(targetKinds, *v) {
			return api.Refuse(a.path, quote(string(*v)), oneOf(targetKinds))
		}
	case *int:
		return validateInt(a.path, *v, 0, maxSetting)
	case *float64:
		return validateValue(a.path, *v, a.most())
	case **api.WorkloadShape:
		if *v != nil {
			return validateWorkload(**v)
		}
	case *[]api.Source:
		return validateRuns(*v)
	case *[]int:
		return validatePrintedLevels(*v)
	case *[]api.RecordedTurn:
		return validateTurns(*v)
	}
	return nil
}

// readMetadata reads the comment lines in front of the header.
func readMetadata(text []byte, b *api.Baseline) error {
	var notes []string
	seen := make(map[string]bool)
	line := 0
	for raw := range strings.Lines(string(text)) {
		line++
		comment, isComment := strings.CutPrefix(strings.TrimRight(raw, "\r\n"), "#")
		if !isComment && strings.TrimSpace(raw) != "" {
			break
		}
		key, value, a := splitComment(comment)
		if a == nil {
			notes = append(notes, value)
			continue
		}
		if allowed, ok := a.set(b, value); seen[key] || !ok {
			return api.Refuse(fmt.Sprintf("line %d, %s", line, key), quote(value), allowed+", once")
		}
		seen[key] = true
	}
	b.Notes = strings.Trim(strings.Join(notes, "\n"), "\n")
	return nil
}

// splitComment returns the attribute that a comment sets, or nil and its text.
func splitComment(comment string) (key, value string, a *attribute) {
	key, value, _ = strings.Cut(comment, ":")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if key == noteKey {
		return key, value, nil
	}
	at := slices.IndexFunc(attributes, func(a attribute) bool { return a.key == key })
	if at < 0 {
		return "", strings.TrimSpace(comment), nil
	}
	return key, value, &attributes[at]
}
