package report

import (
	"encoding/xml"
	"fmt"
	"io"
)

// The following are a JUnit report in the form of Maven Surefire, which Jenkins, GitLab and others read (junit-10.xsd
// of Jenkins' xunit plugin).
type (
	junitSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []junitSuite
	}
	junitSuite struct {
		XMLName    xml.Name        `xml:"testsuite"`
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr,omitempty"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		XMLName xml.Name     `xml:"testcase"`
		Class   string       `xml:"classname,attr"`
		Name    string       `xml:"name,attr"`
		Failure *junitReason `xml:"failure"`
		Error   *junitReason `xml:"error"`
		Skipped *junitReason `xml:"skipped"`
		Out     string       `xml:"system-out,omitempty"`
	}
	junitReason struct {
		Message string `xml:"message,attr"`
	}
)

// add adds a case, and counts how it ended.
func (s *junitSuite) add(c junitCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

// suite returns a case for the run itself, and one for each condition.
func (r *Run) suite() junitSuite {
	s := junitSuite{
		Name: "loadgen", Time: fmt.Sprintf("%.3f", r.Seconds), Timestamp: r.Started,
		Properties: []junitProperty{
			{"target", r.Target.URL},
			{"model", r.Target.Model},
			{"version", r.Program},
			{"level", r.Level.InWords()},
			{"mode", string(r.Mode)},
			{"against", r.against.Name},
		},
	}
	whole := junitCase{Class: "loadgen.run", Name: "turns succeed"}
	for _, problem := range []string{r.Aborted(), r.MostFailed()} {
		if problem != "" && whole.Error == nil {
			whole.Error = &junitReason{problem}
		}
	}
	if !r.Measured() {
		whole.Error = &junitReason{"nothing was measured: no turn completed or failed"}
	}
	s.add(whole)
	lines := r.conditionLines()
	for i, c := range r.Conditions {
		one := junitCase{Class: "loadgen.fail-if", Name: c.Condition}
		switch {
		case c.Outcome == Failed, c.Outcome == NotCertain && r.notCertainFails:
			one.Failure = &junitReason{lines[i]}
		case c.Outcome == Passed:
			one.Out = lines[i]
		default:
			one.Skipped = &junitReason{lines[i]}
		}
		s.add(one)
	}
	return s
}

// suite returns a case for each figure of two results, as --gate judges them.
func (r *Results) suite() junitSuite {
	s := junitSuite{Name: r.Title, Properties: []junitProperty{{"version", r.Program}}}
	for i, side := range []string{"a", "b"} {
		s.Properties = append(s.Properties, junitProperty{side, r.Sides[i].Title})
		if t := r.Sides[i].Target; t != nil {
			s.Properties = append(s.Properties, junitProperty{side + "_target", t.URL})
		}
	}
	for _, f := range r.gateFigures() {
		one := junitCase{Class: "loadgen.compare", Name: f.name}
		switch {
		case f.worse:
			one.Failure = &junitReason{f.text}
		case f.unknown:
			one.Skipped = &junitReason{f.text}
		default:
			one.Out = f.text
		}
		s.add(one)
	}
	return s
}

// writeJUnit writes a report that has test cases.
func writeJUnit(w io.Writer, r interface{ suite() junitSuite }) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{r.suite()}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
