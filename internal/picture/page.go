package picture

import (
	_ "embed"
	"io"
	"strings"

	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/printable"
)

var (
	//go:embed page.css
	pageStyle markup
	//go:embed page.js
	pageScript markup
)

const (
	pageHead markup = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>Ambit: operators and namespaces</title>
<style>
`
	pageBody markup = `</style>
</head>
<body>
<header>
<h1>Operators and namespaces</h1>
`
	pageForm markup = `</header>
<form role="search" onsubmit="return false">
<label>Operator <input type="search" id="operator" autocomplete="off"></label>
<label>Namespace <input type="search" id="namespace" autocomplete="off"></label>
<label><input type="checkbox" id="wrong"> only what is not fully served</label>
<span id="shown" class="dim" role="status"></span>
</form>
<main>
<div class="scroll">
<table role="grid" aria-label="Operators by namespaces. Arrow keys move, Enter shows what a cell stands for.">
<thead><tr role="row"><th scope="col">Operator</th>`
	pageAside markup = `</tbody>
</table>
</div>
<aside id="detail" aria-live="polite"><h2>Why?</h2><p class="dim">Choose a cell: it shows the rules and where they come from.
Arrow keys move, Enter shows, Escape comes back here.</p></aside>
</main>
<footer class="dim">`
	pageData markup = `
<p>Made by <code>ambit matrix -o html</code>. This page is complete and asks nobody for anything.</p></footer>
<script type="application/json" id="data">`
)

// HTML writes the page.
func (p *Page) HTML(w io.Writer) error {
	d := &document{}
	d.write(pageHead)
	d.file(pageStyle)
	d.write(pageBody)
	p.header(d)
	d.write(pageForm)

	shown := p.table(d)

	d.write(pageAside)

	if unserved := texts(p.Matrix.Unserved); len(unserved) > 0 {
		d.write(`<p>Served by none of these: %s</p>`, strings.Join(unserved, ", "))
	}

	d.write(pageData)

	if err := d.json(shown); err != nil {
		return err
	}

	d.write("</script>\n<script>\n")
	d.file(pageScript)
	d.write("</script>\n</body>\n</html>\n")

	return d.flush(w)
}

func (p *Page) header(d *document) {
	d.write(`<p>%s, %s. <span class="dim">Taken %s.</span></p>`+"\n<p>",
		printable.Number(len(p.Matrix.Operators), "operator", "operators"),
		printable.Number(len(p.Matrix.Namespaces), "namespace", "namespaces"), p.Taken.UTC().Format("2006-01-02 15:04 MST"))

	for _, m := range append(overview.Marks(), overview.MarkOf("")) {
		d.write(`<span class="key"><b class="%s">%s</b>%s</span>`, class(m.State), m.Sign, m.Word)
	}

	d.write("</p>\n")

	for _, note := range texts(p.Notes) {
		d.write("<p>Note: %s</p>\n", note)
	}

	for _, what := range texts(p.NotRead) {
		d.write(`<p class="bad">Not read: %s</p>`+"\n", what)
	}

	for i := range p.Matrix.ClusterWide {
		d.write(`<p class="bad">%s</p>`+"\n", printable.Text(p.Matrix.ClusterWide[i].String()))
	}
}

// table writes the heads and the rows, and returns what is shown for their cells.
func (p *Page) table(d *document) data {
	columns := columnNames(p.Matrix.Namespaces)
	for _, name := range columns {
		d.write(`<th scope="col"><span>%s</span></th>`, name)
	}

	d.write("</tr></thead>\n<tbody>\n")

	in := &indexer{
		data: data{Roles: []roleData{}, Services: []serviceData{}}, roles: map[string]int{}, services: map[string]int{},
	}

	for _, o := range p.Matrix.Operators {
		name := Marked(printable.Text(o.String()), p.Matrix.IsClusterWide(o))
		d.write(`<tr role="row"><th scope="row">%s</th>`, name)

		for i, namespace := range p.Matrix.Namespaces {
			var (
				state    overview.State
				services string
			)

			if cell := p.Matrix.At(o, namespace); cell != nil {
				state, services = cell.State, in.of(cell.Services)
			}

			writeCell(d, overview.MarkOf(state), name+" in "+columns[i], services)
		}

		d.write("</tr>\n")
	}

	return in.data
}

// writeCell writes a cell. Services are indexes into those of the data, separated by spaces.
func writeCell(d *document, m overview.Mark, label, services string) {
	d.write(`<td role="gridcell" tabindex="-1" class="%s" aria-label="%s: %s"`, class(m.State), label, m.Word)

	if services != "" {
		d.write(` data-s="%s"`, services)
	}

	d.write(`>%s</td>`, m.Sign)
}
