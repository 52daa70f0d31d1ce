/** One call of the reference: what it takes and gives, as one types it, and a form that tries it. */
import { commonErrors } from '#contracts/customer-api/index.ts';
import {
  badge,
  type Content,
  codeBlock,
  type Html,
  html,
  link,
  prose,
  table,
} from '#service-kit/pages/index.ts';
import { type Operation, type Parameter, type Response, resolveSchema } from './document.ts';
import { exampleAnswer } from './example.ts';
import { type FieldRow, fieldRows, fieldTable, type Places, typeOf } from './fields.ts';
import { curlOf, typescriptOf, usualAnswer } from './snippets.ts';
import { tryForm } from './try-form.ts';

export interface OperationOptions {
  places: Places;
  /** Where the API stands: `https://my.example.com`, or `$URL`. */
  origin: string;
  /** Where the errors are listed. */
  errorsHref: string;
}

export function renderOperation(operation: Operation, options: OperationOptions): Html {
  const { places, origin } = options;
  const { schemas } = places.document;
  const answer = usualAnswer(operation);
  const version = operation.isInV1 ? 'v1 and v2' : 'v2 only';
  return html`<section class="operation" id="${operation.id}"><header class="operation-header"><h2><a class="anchor" href="#${operation.id}">${operation.summary}</a></h2><p class="operation-path"><span class="method">${operation.method}</span> <code>${operation.path}</code> ${badge('neutral', `${operation.scope} key`)} ${badge('neutral', version)}</p></header><div class="operation-columns"><div class="operation-text"><p>${prose(operation.description)}</p>${parameterTable(operation.parameters, places)}${bodyTable(operation, places)}${answerTable(operation.responses, options)}</div><div class="operation-code">${codeBlock({ label: 'curl', code: curlOf(operation, origin, schemas) })}${codeBlock({ label: 'TypeScript', code: typescriptOf(operation, schemas) })}${
    answer !== undefined &&
    codeBlock({
      label: `Answer ${answer.status}`,
      code: JSON.stringify(exampleAnswer(answer.schema!, schemas), null, 2),
      canCopy: false,
    })
  }${tryForm(operation, schemas)}</div></div></section>`;
}

function parameterTable(parameters: readonly Parameter[], places: Places): Content {
  if (parameters.length === 0) return '';
  const rows = parameters.map((parameter): FieldRow => {
    const place = parameter.in === 'path' ? 'In the path.' : parameter.in === 'header' ? 'A header.' : '';
    const text = parameter.description ?? (parameter.schema.description as string | undefined) ?? '';
    return {
      name: parameter.name,
      type: typeOf(parameter.schema, places),
      text: html`${prose(text)} ${place}`,
    };
  });
  return fieldTable('Parameters', rows);
}

function bodyTable(operation: Operation, places: Places): Content {
  if (operation.body === null) return '';
  const schema = resolveSchema(operation.body.schema, places.document.schemas);
  const caption = operation.body.isRequired ? 'Body' : 'Body, which may be left out';
  return fieldTable(caption, fieldRows(schema, places, 'request'));
}

const everywhere: ReadonlySet<string> = new Set(commonErrors);

/** What the call answers; errors that any call may give stand with all the others. */
function answerTable(responses: readonly Response[], options: OperationOptions): Html {
  const rows = responses.flatMap((response) => {
    if (Number(response.status) < 400) return [{ response, reasons: [] as string[] }];
    const reasons = response.reasons.filter((reason) => !everywhere.has(reason));
    return reasons.length === 0 ? [] : [{ response, reasons }];
  });
  return table<(typeof rows)[number]>({
    caption: 'Answers',
    card: { line: ['body', 'text'] },
    refreshSeconds: 0,
    captionVisible: true,
    rows,
    columns: [
      { key: 'status', header: 'Status', kind: 'code', cell: (row) => row.response.status },
      {
        key: 'body',
        header: 'Body',
        kind: 'prose',
        cell: ({ response, reasons }) =>
          reasons.length > 0
            ? reasons.map((reason, index) => [
                index > 0 ? ', ' : '',
                link(`${options.errorsHref}#error-${reason}`, html`<code>${reason}</code>`),
              ])
            : response.schema === null
              ? 'none'
              : typeOf(response.schema, options.places),
      },
      {
        key: 'text',
        header: 'When',
        kind: 'prose',
        cell: ({ response, reasons }) => (reasons.length > 0 ? '' : prose(response.description)),
      },
    ],
    empty: { title: 'No answers', text: 'This call has none.' },
  });
}
