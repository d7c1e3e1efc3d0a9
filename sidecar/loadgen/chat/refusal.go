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

// objection is a failed answer to a probe, and what it says about the request.
type objection struct {
	*Error
	faults []fault // by field, as far as the answer names fields of a probe
	listed bool    // the faults are all of the answer's; else only the first one that can be counts
	words  string  // all that it says
	object bool    // it is a JSON object, and no answer to a chat
}

// fault is what a server objects to in one field: an extension, or fieldLimit.
type fault struct{ field, words string }

// fieldLimit stands for the limit of an answer's length, whatever its name.
const fieldLimit = "max_tokens"

// newObjection reads the body of a failed answer. Fields that it names in members of their own, such as FastAPI's
// detail[].loc and OpenAI's error.param, are all read. Among mere words only the first field is: a server that names
// the one it does not know may list those that it does.
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

// read gives the words of a JSON value, and keeps the faults that it lists.
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
			said := r.read(v)
			words = append(words, said)
			if key == "errors" { // the names of its members are those of fields
				of, _ := v.(map[string]any)
				for _, field := range slices.Sorted(maps.Keys(of)) {
					if fieldName.MatchString(field) {
						r.faults = append(r.faults, fault{fieldOf(field), r.read(of[field])})
					}
				}
			}
		}
	}
	all := strings.Join(words, "\n")
	for _, field := range named {
		r.faults = append(r.faults, fault{field, all})
	}
	return all
}

// The members of a refusal, as [plain] writes them: those that name a field, those that repeat the request, and those
// that are the least value of a field.
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

// located gives the fields of a probe that a locator names: a path, as text or as a list of its parts, or several.
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
	`stream[_ -]?options|include[_-]?usage|max[_ -]?(?:(?:completion|output|new)[_ -]?)?tokens)\b`)

// fieldOf gives the field that a match of [fieldName] means.
func fieldOf(name string) string {
	switch name = plain(name); {
	case name == "annotations", name == "tokenids":
		return ExtTokenIDs
	case name == "nvext", name == "extrafields":
		return ExtNVExt
	case strings.HasPrefix(name, "max"):
		return fieldLimit
	}
	return ExtStreamOptions
}

// plain is a name without what spellings differ in.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// withoutEcho cuts words where they repeat what was sent.
func withoutEcho(words string) string {
	if at := echoed.FindStringIndex(words); at != nil {
		return words[:at[0]]
	}
	return words
}

var echoed = regexp.MustCompile(`(?i)['"]?\binput(?:_value)?['"]?\s*[:=]\s*[{\['"]`)

// mayNameLimit reports whether words about the length of an answer can be the reason of the failure.
func (r objection) mayNameLimit() bool {
	status := r.status()
	return r.isRefusal() || status == http.StatusOK || status >= http.StatusInternalServerError &&
		status != http.StatusServiceUnavailable
}

// mayBeRefusal reports whether the failure may be a refusal by a server that has no status for one.
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
	// commonLeast is the least length of an answer that OpenAI's API takes.
	commonLeast = 16
	// mostLeast bounds what a server may ask for as the least length.
	mostLeast = 4096
	// longer is how many times as long the next attempt's answer is where a server asks for more without a number.
	longer = 8
)

// leastLength is the least length of an answer that words ask for beyond the present one; 0 where they ask for none.
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

// leastNumber finds a number that is the least one, or that the least one is above.
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
	// greatest is a bound from above, in words that have those of the least number in them.
	greatest = regexp.MustCompile(`(?i)(?:(?:\b(?:not|no|cannot|never)|n't)(?: be)? (?:greater|larger|more|bigger|higher|exceed)|\b(?:less|lower|smaller|fewer) than or equal to)(?: than)?(?: or equal to)? *\d+`)
	// lengthWords say that the least length is refused, or that the limit was reached before an answer began.
	lengthWords = regexp.MustCompile(`(?i)minimum|at least|below|>=|greater than|too (small|short|low|few)|limit was reached`)
	// unsupported says that a server does not know a field at all.
	unsupported = regexp.MustCompile(`(?i)max_completion_tokens|unsupported|not (?:supported|permitted|allowed|recogni[sz]ed)|unknown|unrecogni[sz]ed|unexpected|deprecated`)
)

const numeral = `["'` + "`" + `]?(\d+(?:,\d{3})*)\b`
