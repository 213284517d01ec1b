package testbed

import (
	"strconv"
	"strings"
)

// catalogBytes is how large a ConfigMap may be.
const catalogBytes = 1 << 20

// HostileCatalogs are the contents of catalogs, by what they try, each within what a ConfigMap may hold. In all of them the
// package tea has the channel stable, whose newest version is tea.v1.
func HostileCatalogs() map[string]map[string]string {
	fill := func(text string) string { return strings.Repeat(text, (catalogBytes-10_000)/len(text)) }
	version := func(name, spec string) string {
		return "- apiVersion: operators.coreos.com/v1alpha1\n  kind: ClusterServiceVersion\n  metadata: {name: " + name + "}\n" +
			"  spec:\n    version: 1.0.0\n" + spec
	}
	tea := "- packageName: tea\n  channels: [{name: stable, currentCSV: tea.v1}]\n"
	of := func(versions string, packages ...string) map[string]string {
		return map[string]string{"clusterServiceVersions": versions, "packages": tea + strings.Join(packages, "")}
	}
	numbered := func(format string, count int) string {
		var out strings.Builder
		for i := range count {
			out.WriteString(strings.ReplaceAll(strings.ReplaceAll(format, "NEXT", strconv.Itoa(i+1)), "THIS", strconv.Itoa(i)))
		}

		return out.String()
	}
	good := version("tea.v1", "    install: {strategy: deployment}\n")

	return map[string]map[string]string{
		// A few kilobytes that stand for megabytes (a long word three thousand times) or gigabytes ("billion laughs").
		"aliases of a long word": of(version("tea.v1", "    description: &a "+strings.Repeat("x", 4_000)+"\n    keywords: ["+
			strings.Repeat("*a,", 3_000)+"*a]\n")),
		"aliases of aliases": of(version("tea.v1", "    a: &a0 [x,x,x,x,x,x,x,x,x]\n"+
			numbered("    bTHIS: &aNEXT [*aTHIS,*aTHIS,*aTHIS,*aTHIS,*aTHIS,*aTHIS,*aTHIS,*aTHIS,*aTHIS]\n", 9))),
		"many small values":   of(version("tea.v1", "    keywords: ["+fill("a,")+"a]\n")),
		"many empty objects":  of(version("tea.v1", "    install: {strategy: deployment, spec: {deployments: ["+fill("{},")+"{}]}}\n")),
		"fewer empty objects": of(version("tea.v1", "    relatedImages: ["+strings.Repeat("{},", 50_000)+"{}]\n")),
		"many null fields":    of(version("tea.v1", "    x: {"+fill("a,")+"a}\n")),
		"deep lists":          of(version("tea.v1", "    x: "+strings.Repeat("[", 500_000)+"\n")),
		"deep enough":         of(version("tea.v1", "    x: "+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)+"\n")),
		"deep dashes":         of(version("tea.v1", "    x:\n      "+fill("- ")+"a\n")),
		"documents":           of(good + fill("---\n")),
		"entries of nothing":  of(good + fill("-\n") + "- [\n"),
		"short lines":         of(good + "- [\n" + fill(" a\n")),
		"one long line":       of(version("tea.v1", "    description: "+fill("x")+"\n") + "- [\n"),
		"escapes":             of(version("tea.v1", "    description: \""+fill(`\0`)+"\"\n")),
		"UTF-16":              of("\xff\xfe" + strings.Join(strings.Split(good, ""), "\x00")),
		"a long range": of(good, "- packageName: many\n  channels: [{name: b, currentCSV: tea.v1, entries: [{name: tea.v1, "+
			"skipRange: '"+fill("1.x || ")+"1.x'}]}]\n"),
		"a long number": of(strings.Replace(good, "1.0.0", "1.0.0-"+fill("1.")+"1", 1)),
		"channels": of(good, "- packageName: many\n  channels:\n"+
			numbered("  - {name: cTHIS, currentCSV: tea.v1}\n", 10_000)),
		"entries of a channel": of(good, "- packageName: many\n  channels:\n  - name: a\n    currentCSV: v0\n    entries:\n"+
			numbered("    - {name: vTHIS, replaces: vNEXT}\n", 11_000)),
		"channels of a chain": of(good+numbered("- {apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, "+
			"metadata: {name: vTHIS}, spec: {replaces: vNEXT}}\n", 4_000),
			"- packageName: many\n  channels:\n"+numbered("  - {name: cTHIS, currentCSV: v0, entries: [{}]}\n", 6_000)),
		"a circle": of(good+numbered("- {apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, "+
			"metadata: {name: vTHIS}, spec: {replaces: vNEXT}}\n", 2_000)+version("v2000", "    replaces: v0\n"),
			"- packageName: many\n  channels: [{name: a, currentCSV: v0}]\n"),
		"much that is required": of(version("tea.v1", "    customresourcedefinitions:\n      required:\n"+
			numbered("      - {name: rTHIS, kind: A}\n", 9_900))),
		"a long name":       of(good, "- packageName: "+fill("x")+"\n  channels: [{name: a, currentCSV: tea.v1}]\n"),
		"a long currentCSV": of(good, "- packageName: many\n  channels: [{name: a, currentCSV: "+fill("x")+"}]\n"),
		"problems":          of(good + numbered("- {a: THIS}\n", 4_000)),
	}
}
