//! A dashboard as Grafana's JSON (schema 39, Grafana 10.4 and later).
//!
//! Colours are Grafana's palette, so that both its themes fit.

use serde_json::{Value, json};

use crate::dashboards::{Dashboard, Kind, Panel, Unit, Variable};
use crate::layout::{self, Item, Place};

pub(crate) fn dashboard(dashboard: &Dashboard) -> String {
    let panels = panels(dashboard);
    let variables: Vec<Value> =
        [source()].into_iter().chain(dashboard.variables.iter().map(variable)).collect();
    let value = json!({
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.about,
        "tags": ["wicketgate", "generated"],
        "schemaVersion": 39,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": { "from": "now-1h", "to": "now" },
        "timezone": "browser",
        "templating": { "list": variables },
        "links": [{
            "type": "dashboards", "tags": ["wicketgate"], "asDropdown": false,
            "includeVars": true, "keepTime": true, "title": "Wicketgate",
        }],
        "panels": panels,
    });
    // Pretty, so that a change of one panel is a change of its lines.
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

fn panels(dashboard: &Dashboard) -> Vec<Value> {
    let place =
        |place: Place| json!({ "x": place.x, "y": place.y, "w": place.width, "h": place.height });
    let items = layout::of(dashboard).into_iter().enumerate();
    let value = items.map(|(index, (at, item))| match item {
        Item::Head(row) => json!({
            "id": index + 1, "type": "row", "title": row.title, "collapsed": false, "panels": [],
            "gridPos": place(at),
        }),
        Item::Panel(one) => panel(one, index + 1, &place(at)),
    });
    value.collect()
}

fn panel(panel: &Panel, id: usize, at: &Value) -> Value {
    let targets: Vec<Value> = panel
        .queries
        .iter()
        .zip('A'..='Z')
        .map(|(query, letter)| {
            json!({
                "refId": letter.to_string(), "expr": query.expr, "legendFormat": query.legend,
                "datasource": datasource(), "editorMode": "code", "range": true,
            })
        })
        .collect();
    let mut defaults = json!({ "unit": unit(panel.unit), "color": { "mode": "palette-classic" } });
    if matches!(panel.unit, Unit::Share) {
        defaults["min"] = json!(0);
    }
    let options = if panel.kind == Kind::Number {
        json!({
            "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
            "colorMode": "none", "graphMode": "area", "textMode": "value",
        })
    } else {
        let stacked = panel.kind == Kind::Stack;
        defaults["custom"] = json!({
            "drawStyle": "line", "lineWidth": 1, "showPoints": "never", "spanNulls": false,
            "fillOpacity": if stacked { 40 } else { 0 },
            "stacking": { "mode": if stacked { "normal" } else { "none" }, "group": "A" },
        });
        json!({
            "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true },
            "tooltip": { "mode": "multi", "sort": "desc" },
        })
    };
    json!({
        "id": id,
        "type": if panel.kind == Kind::Number { "stat" } else { "timeseries" },
        "title": panel.title,
        "description": panel.about,
        "gridPos": at,
        "datasource": datasource(),
        "targets": targets,
        "fieldConfig": { "defaults": defaults, "overrides": [] },
        "options": options,
    })
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "short",
        Unit::Seconds => "s",
        Unit::Share => "percentunit",
        Unit::RequestsPerSecond => "reqps",
        Unit::TokensPerSecond => "suffix: tok/s",
        Unit::PerSecond => "suffix:/s",
    }
}

fn datasource() -> Value {
    json!({ "type": "prometheus", "uid": "${source}" })
}

/// Which Prometheus; the default at first.
fn source() -> Value {
    json!({ "name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus" })
}

fn variable(variable: &Variable) -> Value {
    let query = format!("label_values({}, {})", variable.of, variable.name);
    json!({
        "name": variable.name, "type": "query", "datasource": datasource(),
        "query": { "query": query, "refId": variable.name }, "definition": query,
        "includeAll": true, "allValue": ".*", "multi": true, "refresh": 2, "sort": 1,
        "current": { "text": "All", "value": "$__all" },
    })
}
