# forestc with all that README's commands need:
#   docker build -t forestc . && docker run --rm -v "$PWD:/data" forestc inspect model.json
FROM python:3.13-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends g++ make \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip install --no-cache-dir "/src[all]"
WORKDIR /data
ENTRYPOINT ["forestc"]
