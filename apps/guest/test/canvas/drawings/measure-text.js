ctx.font = '32px serif';
ctx.textBaseline = 'alphabetic';
for (const [index, text] of ['measure', 'Typography', '測定する'].entries()) {
  const box = ctx.measureText(text);
  const y = 60 + index * 70;
  ctx.fillStyle = '#caf0f8';
  ctx.fillRect(
    20 - box.actualBoundingBoxLeft,
    y - box.actualBoundingBoxAscent,
    box.actualBoundingBoxLeft + box.actualBoundingBoxRight,
    box.actualBoundingBoxAscent + box.actualBoundingBoxDescent,
  );
  ctx.fillStyle = '#03045e';
  ctx.fillText(text, 20, y);
  ctx.fillRect(20, y + 12, box.width, 2);
}
