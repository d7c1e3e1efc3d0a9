package chat

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// objection is a failed answer to a probe, with the parts of the request that it names.
type objection struct {
	*Error
	faults []fault // of the fields of a probe that the answer names
	listed bool    // all faults count; else only the first one that can be changed
	words  string  // the whole text
	object bool    // the answer is a JSON object without choices
}

// fault is a server's complaint about one field: an extension, or fieldLimit.
type fault struct{ field, words string }

// fieldLimit is the limit of an answer's length, under any of its names.
const fieldLimit = "max_tokens"

// newObjection parses the body of a failed answer. It reads all fields that members name, such as FastAPI's
// detail[].loc and OpenAI's error.param. In plain text only the first field counts: a server that names an unknown
// field may list the known ones after it.
func newObjection(e *Error, body string) objection {
	r := objection{Error: e}
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		v = body
	}
	r.words = r.read(v)
	members, isObject := v.(map[string]any)
	r.object = isObject && members["choices"] == nil
	r.listed = len(r.faults) > 0
	if !r.listed {
		for _, name := range fieldName.FindAllString(withoutEcho(r.words), -1) {
			r.faults = append(r.faults, fault{fieldOf(name), r.words})
		}
	}
	return r
}

// read returns the text in a JSON value, and adds the faults that it lists.
func (r *objection) read(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var words []string
		for _, one := range v {
			words = append(words, r.read(one))
		}
		return strings.Join(words, "\n")
	case map[string]any:
		return r.readMembers(v)
	}
	return ""
}

func (r *objection) readMembers(members map[string]any) string {
	var words, named []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		v, key := members[name], plain(name)
		switch n, isNumber := v.(float64); {
		case echoes[key]:
		case locators[key]:
			named = append(named, located(v)...)
		case isNumber && bounds[key] != "":
			words = append(words, fmt.Sprintf("%s %.0f", bounds[key], n))
		default:
			words = append(words, r.read(v))
			if key == "errors" {
				r.readByField(v)
			}
		}
	}
	all := strings.Join(words, "\n")
	for _, field := range named {
		r.faults = append(r.faults, fault{field, all})
	}
	return all
}

// readByField adds the faults of an object whose members have the names of fields.
func (r *objection) readByField(v any) {
	faults, _ := v.(map[string]any)
	for _, field := range slices.Sorted(maps.Keys(faults)) {
		if fieldName.MatchString(field) {
			r.faults = append(r.faults, fault{fieldOf(field), r.read(faults[field])})
		}
	}
}

// Members of a refusal, normalized by [plain]: locators name a field, echoes repeat the request, bounds are the minimum
// of a field.
var (
	locators = set("loc", "param", "params", "parameter", "field", "fields", "path", "pointer", "name", "property",
		"instancepath")
	echoes = set("input", "inputvalue", "body", "request", "requestbody", "url")
	bounds = map[string]string{"ge": ">=", "min": ">=", "minimum": ">=", "gt": ">", "exclusiveminimum": ">"}
)

func set(names ...string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}

// located returns the fields of a probe in a locator: a path, as text or as a list of its parts, or a list of paths.
func located(v any) (fields []string) {
	switch v := v.(type) {
	case string:
		if names := fieldName.FindAllString(v, -1); len(names) > 0 {
			fields = []string{fieldOf(names[len(names)-1])} // the innermost
		}
	case []any:
		for _, one := range v {
			if _, isPath := one.([]any); isPath {
				fields = append(fields, located(one)...)
			} else if inner := located(one); len(inner) > 0 {
				fields = inner
			}
		}
	}
	return fields
}

// fieldName matches the names of a probe's fields, in any spelling.
var fieldName = regexp.MustCompile(`(?i)\b(?:annotations|token[_-]?ids|nv[_-]?ext|extra[_-]fields|extraFields|` +
	`stream[_ -]?options|include[_-]?usage|ignore[_-]?eos|min[_-]tokens|max[_ -]?(?:(?:completion|output|new)[_ -]?)?tokens)\b`)

// fieldOf returns the field of a match of [fieldName].
func fieldOf(name string) string {
	switch name = plain(name); {
	case name == "annotations", name == "tokenids":
		return ExtTokenIDs
	case name == "nvext", name == "extrafields":
		return ExtNVExt
	case name == "ignoreeos", name == "mintokens":
		return ExtExact
	case strings.HasPrefix(name, "max"):
		return fieldLimit
	}
	return ExtStreamOptions
}

// plain normalizes a name: lower case, without separators.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// withoutEcho cuts off the part of a text that repeats the request.
func withoutEcho(words string) string {
	if at := echoed.FindStringIndex(words); at != nil {
		return words[:at[0]]
	}
	return words
}

var echoed = regexp.MustCompile(`(?i)['"]?\binput(?:_value)?['"]?\s*[:=]\s*[{\['"]`)

// mayNameLimit reports whether text about an answer's length can be the reason of the failure.
func (r objection) mayNameLimit() bool {
	status := r.status()
	return r.isRefusal() || status == http.StatusOK || status >= http.StatusInternalServerError &&
		status != http.StatusServiceUnavailable
}

// mayBeRefusal reports whether the failure may be a refusal by a server without a status for refusals.
func (r objection) mayBeRefusal() bool {
	switch r.status() {
	case http.StatusInternalServerError, http.StatusNotImplemented:
		return true
	case http.StatusOK: // an error without a status, or JSON that is neither an error nor an answer
		return r.Class == api.ErrorStream || r.Class == api.ErrorMalformed && r.object
	}
	return false
}

const (
	// commonLeast is the minimum length of an answer in OpenAI's API.
	commonLeast = 16
	// mostLeast is the largest minimum length that a probe accepts.
	mostLeast = 4096
	// longer is the factor of the next attempt's length if a server demands more without a number.
	longer = 8
)

// leastLength returns the minimum length that a text demands if it exceeds length, else 0.
func leastLength(words string, length int) (least int) {
	lower := greatest.ReplaceAllString(withoutEcho(words), "")
	for _, bound := range leastNumbers {
		for _, at := range bound.pattern.FindAllStringSubmatchIndex(lower, -1) {
			n, err := strconv.Atoi(strings.ReplaceAll(lower[at[2]:at[3]], ",", ""))
			if bound.above {
				n++
			}
			isDate := n > 1900 && n < 2100 && strings.HasPrefix(lower[at[3]:], "-")
			if err == nil && n > length && n <= mostLeast && !isDate && (least == 0 || n < least) {
				least = n
			}
		}
	}
	if least == 0 && lengthWords.MatchString(lower) && !anyBound(lower) {
		if least = max(commonLeast, longer*length); least > mostLeast || length >= mostLeast {
			return 0
		}
	}
	return least
}

func anyBound(words string) bool {
	return slices.ContainsFunc(leastNumbers, func(b leastNumber) bool { return b.pattern.MatchString(words) })
}

// leastNumber matches a minimum, or with above a number below the minimum.
type leastNumber struct {
	pattern *regexp.Regexp
	above   bool
}

var (
	leastNumbers = []leastNumber{
		{regexp.MustCompile(`(?i)(?:>=|≥|\bat least|\bor equal to|(?:\b(?:not|no|cannot|never)|n't)(?: be)? (?:less|lower|smaller|fewer|under|below)(?: than)?|` +
			`\b(?:is|was) (?:less|lower|smaller|fewer|under|below)(?: than)?|\bmin(?:imum)?(?: (?:allowed|supported|accepted|output|length|tokens?|value|number|limit))*(?: is| of|:|=)*)` +
			` *(?:the )?(?:minimum )?(?:value |length )?(?:of )?` + numeral), false},
		{regexp.MustCompile(`(?i)(?:>|\b(?:greater|larger|more|bigger|higher) than|\bmust exceed|\bshould exceed|\bmust be (?:above|over)) *` + numeral), true},
		{regexp.MustCompile(`(?i)(?:\[|\bbetween |\bfrom |\b(?:range|within|interval)(?: of| is|:| \w+ \w+)? )\s*(\d+) *(?:,|;|\.\.+|-|–|—|~|to\b|and\b|through\b) *(?:\d|inf|∞)`), false},
		{regexp.MustCompile(`\((\d+) *(?:,|;) *(?:\d+|inf\w*|∞) *[\])]`), true},
		{regexp.MustCompile(`(?i)` + numeral + ` *(?:<=|≤) *\W?max`), false},
		{regexp.MustCompile(`(?i)` + numeral + ` *< *\W?max`), true},
		{regexp.MustCompile(`(?i)` + numeral + `(?: tokens)?,? (?:or|and) (?:more|greater|higher|larger|above|up)\b`), false},
	}
	// greatest matches a maximum, whose words contain those of a minimum.
	greatest = regexp.MustCompile(`(?i)(?:(?:\b(?:not|no|cannot|never)|n't)(?: be)? (?:greater|larger|more|bigger|higher|exceed)|\b(?:less|lower|smaller|fewer) than or equal to)(?: than)?(?: or equal to)? *\d+`)
	// lengthWords matches complaints about too small a length, or that the limit was reached before the answer began.
	lengthWords = regexp.MustCompile(`(?i)minimum|at least|below|>=|greater than|too (small|short|low|few)|limit was reached`)
	// unsupported matches complaints about an unknown field.
	unsupported = regexp.MustCompile(`(?i)max_completion_tokens|unsupported|not (?:supported|permitted|allowed|recogni[sz]ed)|unknown|unrecogni[sz]ed|unexpected|deprecated`)
)

const numeral = `["'` + "`" + `]?(\d+(?:,\d{3})*)\b`
