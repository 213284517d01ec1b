"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const rows = Array.from(document.querySelectorAll("tbody tr"));
  const heads = Array.from(document.querySelectorAll("thead th"));
  const cells = rows.map(function (row) { return Array.from(row.querySelectorAll("td")); });
  const detail = document.getElementById("detail");
  const welcome = detail.innerHTML;
  let at = null, chosen = null;

  function element(name, text, kind) {
    const e = document.createElement(name);
    if (text !== undefined) { e.textContent = text; }
    if (kind) { e.className = kind; }
    return e;
  }

  function show(cell) {
    if (chosen) { chosen.removeAttribute("aria-selected"); }
    chosen = cell;
    cell.setAttribute("aria-selected", "true");
    const r = rows.findIndex(function (row) { return row.contains(cell); });
    const c = cells[r].indexOf(cell);
    detail.replaceChildren(element("h2", rows[r].querySelector("th").textContent + " in " + heads[c + 1].textContent));
    if (!cell.dataset.s) {
      detail.append(element("p", "It is not a member of any scope of this operator."));
      return;
    }
    cell.dataset.s.split(" ").forEach(function (index) {
      const s = data.services[Number(index)];
      detail.append(element("h3", "For " + s.scope));
      if (s.reason) { detail.append(element("p", s.reason + ": " + (s.message || ""), "bad")); }
      if (s.roles.length === 0) {
        detail.append(element("p", s.unknown ? "Its permissions could not be read." :
          "The operator has no permissions in its own namespace, so it gets none here."));
      }
      s.roles.forEach(function (k) {
        const role = data.roles[k];
        detail.append(element("p", role.name + (role.missing ? " (missing)" : ""), role.missing ? "bad" : ""));
        if (role.binding) { detail.append(element("p", "bound by " + role.binding, "dim")); }
        const list = element("ul");
        role.rules.forEach(function (rule) {
          const item = element("li");
          item.append(element("code", rule));
          list.append(item);
        });
        if (role.rules.length === 0) { list.append(element("li", "its rules could not be read, or it has none")); }
        detail.append(list);
      });
    });
  }

  function visible(r, c) { return cells[r] && cells[r][c] && !rows[r].hidden && !cells[r][c].hidden; }

  function go(r, c) {
    if (at) { cells[at[0]][at[1]].tabIndex = -1; }
    at = [r, c];
    cells[r][c].tabIndex = 0;
    cells[r][c].focus();
  }

  function move(dr, dc) {
    let r = at[0] + dr, c = at[1] + dc;
    while (cells[r] && cells[r][c]) {
      if (visible(r, c)) { go(r, c); return; }
      r += dr;
      c += dc;
    }
  }

  document.querySelector("tbody").addEventListener("click", function (event) {
    const cell = event.target.closest("td");
    if (!cell) { return; }
    const r = rows.findIndex(function (row) { return row.contains(cell); });
    go(r, cells[r].indexOf(cell));
    show(cell);
  });

  document.querySelector("tbody").addEventListener("keydown", function (event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (step) {
      move(step[0], step[1]);
    } else if (event.key === "Enter" || event.key === " ") {
      show(event.target);
    } else if (event.key === "Escape") {
      if (chosen) { chosen.removeAttribute("aria-selected"); }
      chosen = null;
      detail.innerHTML = welcome;
    } else {
      return;
    }
    event.preventDefault();
  });

  function first() {
    for (let r = 0; r < rows.length; r++) {
      for (let c = 0; c < cells[r].length; c++) {
        if (visible(r, c)) {
          if (at) { cells[at[0]][at[1]].tabIndex = -1; }
          at = [r, c];
          cells[r][c].tabIndex = 0;
          return;
        }
      }
    }
  }

  function filter() {
    const operator = document.getElementById("operator").value.toLowerCase();
    const namespace = document.getElementById("namespace").value.toLowerCase();
    const wrong = document.getElementById("wrong").checked;
    const bad = function (cell) { return cell.classList.contains("failed") || cell.classList.contains("partial"); };
    const rowOn = rows.map(function (row, r) {
      return row.querySelector("th").textContent.toLowerCase().includes(operator) && (!wrong || cells[r].some(bad));
    });
    const columnOn = heads.slice(1).map(function (head, c) {
      return head.textContent.toLowerCase().includes(namespace) &&
        (!wrong || cells.some(function (row, r) { return rowOn[r] && bad(row[c]); }));
    });
    heads.slice(1).forEach(function (head, c) { head.hidden = !columnOn[c]; });
    rows.forEach(function (row, r) {
      row.hidden = !rowOn[r];
      cells[r].forEach(function (cell, c) { cell.hidden = !columnOn[c]; });
    });
    const count = function (list) { return list.filter(Boolean).length; };
    document.getElementById("shown").textContent =
      count(rowOn) + " of " + rows.length + " operators, " + count(columnOn) + " of " + (heads.length - 1) + " namespaces";
    if (!at || !visible(at[0], at[1])) { first(); }
  }

  ["operator", "namespace", "wrong"].forEach(function (id) { document.getElementById(id).addEventListener("input", filter); });
  filter();
}());
