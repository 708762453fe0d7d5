/* The little that HTML, CSS and htmx cannot do: copy, local time, and keys. */
(() => {
  "use strict";

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const text = button.parentElement.querySelector("code").textContent;
    const label = button.querySelector("span");
    try {
      await navigator.clipboard.writeText(text);
      label.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(button.parentElement.querySelector("code"));
      label.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { label.textContent = "Copy"; }, 2000);
  });

  const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  document.addEventListener("mouseover", (event) => {
    const time = event.target.closest("time[datetime]");
    if (time) time.title = clock.format(new Date(time.dateTime));
  });

  // A request that is decided, here or elsewhere, becomes another element: the focus goes with it.
  let asked = "";
  document.addEventListener("focusin", (event) => {
    asked = event.target.closest("[data-card]")?.id.replace(/^(wait|done)-/, "") ?? "";
  });
  document.addEventListener("htmx:after:swap", () => {
    if (asked && document.activeElement === document.body) {
      (document.getElementById(`wait-${asked}`) ?? document.getElementById(`done-${asked}`))?.focus();
    }
  });

  // A list that is searched anew is another element too: the focus stays on the row it was on.
  let row = null;
  document.addEventListener("htmx:before:swap", () => {
    row = document.activeElement?.closest(".tool-rows a, [data-rows] a")?.getAttribute("href");
  });
  document.addEventListener("htmx:after:swap", () => {
    if (row && document.activeElement === document.body) document.querySelector(`main a[href="${CSS.escape(row)}"]`)?.focus();
  });

  const isTyping = (element) => element.closest("input, textarea, select, [contenteditable]");

  // "/" goes to the search; j and k walk through the rows of a list, Enter opens (they are links).
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target.matches?.("[data-focus]")) {
      event.preventDefault(); // a browser would empty the field, and the results would go
      event.target.blur();
      return;
    }
    const card = event.target.closest?.("[data-card]");
    if (event.key === "Escape" && card) {
      for (const details of card.querySelectorAll("details[open]")) details.open = false;
      card.focus();
      return;
    }
    if (isTyping(event.target)) return;
    // The letters of a card that has the focus: its button, its link, or what it unfolds.
    const named = !event.repeat && /^[a-z]$/.test(event.key) && card?.querySelector(`[data-key="${event.key}"]`);
    if (named) {
      event.preventDefault();
      named.click();
      named.closest("details")?.querySelector("input:not([type=hidden])")?.focus();
    } else if (event.key === "/") {
      const search = document.querySelector("[data-focus='/']");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    } else if (event.key === "j" || event.key === "k") {
      const links = [...document.querySelectorAll("[data-rows] tbody tr td:first-child a, .tool-rows a, [data-card]")]
        .filter((link) => link.checkVisibility());
      if (!links.length) return;
      const here = links.indexOf(document.activeElement?.closest("tr")?.querySelector("a") ?? card ?? document.activeElement);
      const next = event.key === "j" ? Math.min(here + 1, links.length - 1) : Math.max(here - 1, 0);
      links[next].focus();
    }
  });

})();
