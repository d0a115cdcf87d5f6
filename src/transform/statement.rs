//! One step's text: read, `<SRC>` put in, split into statements, only queries and views let through.

use super::{Error, Result, one_line, output};
use crate::config::TransformerConfig;
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::Statement as Sql;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// What stands for the input in a step's text; case-sensitive (`SqlQueryBasedTransformer`, 0.15).
const SOURCE: &str = "<SRC>";
/// Characters of a statement in a message.
const SHOWN: usize = 200;

/// One transformer, parsed.
pub(super) struct Step {
    /// `transformer 1 (SqlQueryBasedTransformer)`
    name: String,
    statements: Vec<Statement>,
}

impl Step {
    /// `number` counts from 1; `source` is the view that takes the place of `<SRC>`.
    pub async fn read(number: usize, config: &TransformerConfig, source: &str) -> Result<Step> {
        let (name, text) = match config {
            TransformerConfig::SqlQuery(text) => {
                (format!("transformer {number} (SqlQueryBasedTransformer)"), text.clone())
            }
            TransformerConfig::SqlFile(path) => {
                let name = format!("transformer {number} (SqlFileBasedTransformer)");
                let text = read_file(path).await;
                let text = text.map_err(|why| Error::File { step: name.clone(), path: path.clone(), why })?;
                (name, text)
            }
        };
        let unsupported = |what: String| Error::Unsupported { step: name.clone(), statement: cut(&text), what };
        let broken = |why: String| Error::Sql { step: name.clone(), statement: cut(&text), why };
        let tokens = Tokenizer::new(&GenericDialect {}, &text.replace(SOURCE, source))
            .tokenize_with_location()
            .map_err(|e| broken(e.to_string()))?;
        let in_quotes = tokens.iter().find_map(|t| match &t.token {
            Token::Word(word) if word.quote_style == Some('"') => Some(&word.value),
            _ => None,
        });
        if let Some(word) = in_quotes {
            return Err(unsupported(format!(
                "\"{word}\" in double quotes is a text in Spark and a column here: write '{word}' or `{word}`"
            )));
        }
        let parsed = DFParserBuilder::new(tokens).with_dialect(&GenericDialect {}).build();
        let statements: Vec<Statement> =
            parsed.and_then(|mut parser| parser.parse_statements()).map_err(|e| broken(one_line(&e)))?.into();
        match (config, statements.len()) {
            (_, 0) => Err(broken("there is no statement".into())),
            (TransformerConfig::SqlQuery(_), 2..) => Err(unsupported(
                "several statements, and this transformer takes one: put them in a file for SqlFileBasedTransformer"
                    .into(),
            )),
            _ => Ok(Step { name, statements }),
        }
    }

    /// Makes the views, checks every query; gives the last one.
    pub async fn run(self, context: &SessionContext) -> Result<DataFrame> {
        let mut last = None;
        let count = self.statements.len();
        for (index, mut statement) in self.statements.into_iter().enumerate() {
            let step = match count {
                1 => self.name.clone(),
                _ => format!("{}, statement {}", self.name, index + 1),
            };
            let text = cut(&statement.to_string());
            let failed =
                |e: &DataFusionError| Error::Sql { step: step.clone(), statement: text.clone(), why: one_line(e) };
            let unsupported = |what: String| Error::Unsupported { step: step.clone(), statement: text.clone(), what };
            let is_query = match &mut statement {
                Statement::Statement(sql) => match sql.as_mut() {
                    Sql::Query(query) => {
                        output::name_struct_fields(query);
                        true
                    }
                    Sql::CreateView(view) if !view.materialized => {
                        output::name_struct_fields(&mut view.query);
                        // Every view here lives as long as the round.
                        view.temporary = false;
                        false
                    }
                    _ => return Err(unsupported(refusal(&text))),
                },
                _ => return Err(unsupported(refusal(&text))),
            };
            let plan = context.state().statement_to_plan(statement).await.map_err(|e| failed(&e))?;
            let rows = context.execute_logical_plan(plan).await.map_err(|e| failed(&e))?;
            if !is_query {
                last = None;
                continue;
            }
            if let Some(name) = output::doubled(rows.schema()) {
                return Err(unsupported(format!("two columns of the result are named {name}: rename one with AS")));
            }
            last = Some(rows);
        }
        last.ok_or_else(|| Error::Unsupported {
            step: self.name.clone(),
            statement: "CREATE VIEW".into(),
            what: "the last statement must be a query, whose rows are the result".into(),
        })
    }
}

fn refusal(statement: &str) -> String {
    let verb: Vec<&str> = statement.split_whitespace().take(2).collect();
    format!("{} is not supported; queries and CREATE VIEW are", verb.join(" ").to_uppercase())
}

/// The text of a local file, given as a path or a `file:` URL.
async fn read_file(path: &str) -> std::result::Result<String, String> {
    let local = match url::Url::parse(path) {
        Ok(url) if url.scheme() == "file" => {
            url.to_file_path().map_err(|()| "the URL names no local file".to_string())?
        }
        Ok(url) if path.contains("://") => {
            return Err(format!("SQL files are read from local disks, not from {}", url.scheme()));
        }
        _ => path.into(),
    };
    tokio::fs::read_to_string(local).await.map_err(|e| e.to_string())
}

/// One line, at most [`SHOWN`] characters.
fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
