/** What a person reads on the pages of the console: the texts of its TSX, in pieces that are read on their own. */
import ts from 'typescript-5'
import type { Passage } from './plain-words.ts'

/** Tags that go on with the sentence that they stand in. */
const inlineTags = ['a', 'b', 'code', 'em', 'i', 'kbd', 'small', 'span', 'strong', 'time']
const inlineComponents = ['Age', 'Badge', 'Link', 'LockLink', 'SessionLink']
const inline = new Set([...inlineTags, ...inlineComponents])
/** Attributes that nobody reads. */
const unread = new Set(['class', 'd', 'id', 'key', 'points', 'style', 'transform', 'viewBox'])
/** For what is only known when the page is there: a number, a name, an age. */
const unknownWord = 'x'

/** The texts of one file, with the lines at which they begin. */
export function passagesOnScreen(name: string, source: string): Passage[] {
  const kind = name.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true, kind)
  const passages: Passage[] = []
  const add = (node: ts.Node, text: string): void => {
    const plain = text.replaceAll(/\s+/g, ' ').trim()
    const { line } = file.getLineAndCharacterOfPosition(node.getStart())
    if (/[a-z]/i.test(plain)) passages.push({ line: line + 1, text: plain })
  }

  /** Reads an element to its end, with the inline ones in it; others are passages of their own. */
  const readElement = (element: ts.JsxElement | ts.JsxFragment): string => {
    let text = ''
    for (const child of element.children) {
      if (ts.isJsxText(child)) text += child.text
      else if (ts.isJsxExpression(child)) {
        text += child.expression === undefined ? '' : readExpression(child.expression)
      } else if (isInline(child)) {
        visitAttributes(child)
        text += ts.isJsxSelfClosingElement(child) ? unknownWord : readElement(child)
      } else visit(child)
    }
    return text
  }

  /** A text that stands there, or a word for what is computed. What that has in it is read on its own. */
  const readExpression = (expression: ts.Expression): string => {
    const known = textOf(expression)
    if (known !== undefined) return known
    visit(expression)
    return unknownWord
  }

  const visitAttributes = (element: ts.JsxElement | ts.JsxSelfClosingElement | ts.JsxFragment) => {
    if (ts.isJsxFragment(element)) return
    const { attributes } = ts.isJsxElement(element) ? element.openingElement : element
    for (const attribute of attributes.properties) {
      if (!ts.isJsxAttribute(attribute) || !unread.has(attribute.name.getText())) visit(attribute)
    }
  }

  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) return
    if (ts.isJsxElement(node) || ts.isJsxFragment(node)) {
      visitAttributes(node)
      add(node, readElement(node))
      return
    }
    if (ts.isJsxSelfClosingElement(node)) {
      visitAttributes(node)
      return
    }
    const text = ts.isExpression(node) ? textOf(node) : undefined
    if (text === undefined) ts.forEachChild(node, visit)
    else add(node, text)
    if (ts.isTemplateExpression(node)) node.templateSpans.forEach((span) => visit(span.expression))
  }

  visit(file)
  return passages
}

function isInline(node: ts.JsxChild): node is ts.JsxElement | ts.JsxSelfClosingElement {
  if (!ts.isJsxElement(node) && !ts.isJsxSelfClosingElement(node)) return false
  const tag = (ts.isJsxElement(node) ? node.openingElement : node).tagName.getText()
  return inline.has(tag)
}

function textOf(node: ts.Expression): string | undefined {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text
  if (!ts.isTemplateExpression(node)) return undefined
  const rest = node.templateSpans.map(({ literal }) => unknownWord + literal.text)
  return node.head.text + rest.join('')
}
