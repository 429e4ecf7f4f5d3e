// Decodes each case with the structs that Apache's compiler makes of the IDL, and encodes it again. Cases and answers are those
// of tests/cpp/cases.h; `types`, the table of constructors, is written by the test.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"

	"github.com/apache/thrift/lib/go/thrift"
)

func take(in io.Reader) ([]byte, error) {
	var size uint32
	if err := binary.Read(in, binary.LittleEndian, &size); err != nil {
		return nil, err
	}
	text := make([]byte, size)
	_, err := io.ReadFull(in, text)
	return text, err
}

func put(out *bufio.Writer, status byte, text []byte) {
	out.WriteByte(status)
	binary.Write(out, binary.LittleEndian, uint32(len(text)))
	out.Write(text)
}

func again(name string, data []byte) ([]byte, error) {
	create, known := types[name]
	if !known {
		return nil, errors.New("no type " + name)
	}
	ctx, object := context.Background(), create()
	input := thrift.NewTMemoryBufferLen(len(data))
	input.Write(data)
	if err := object.Read(ctx, thrift.NewTCompactProtocolConf(input, nil)); err != nil {
		return nil, err
	}
	output := thrift.NewTMemoryBuffer()
	writer := thrift.NewTCompactProtocolConf(output, nil)
	if err := object.Write(ctx, writer); err != nil {
		return nil, err
	}
	if err := writer.Flush(ctx); err != nil {
		return nil, err
	}
	return output.Bytes(), nil
}

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		name, err := take(in)
		if err != nil {
			return
		}
		data, err := take(in)
		if err != nil {
			os.Exit(1)
		}
		if text, err := again(string(name), data); err != nil {
			put(out, '!', []byte(err.Error()))
		} else {
			put(out, '=', text)
		}
	}
}
